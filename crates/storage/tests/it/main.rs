//! Storage from outside: what crashes, failures and damage leave of logs, blobs and manifests.

mod alike;
mod check;
mod crashes;
mod damage;
mod failures;
mod golden;
mod images;
mod locks;
mod reading;
mod threads;
