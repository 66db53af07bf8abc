//! Black-box tests of the machine value, on fixture folders written by each test.

mod chiplets;
mod cpu_lists;
mod fixture;
mod here;
mod hostile;
mod limits;
mod report;
mod servers;
mod shapes;
