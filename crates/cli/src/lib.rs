//! The command line: `demo`, `doctor`, `build`, `calibrate`, `search`, `bench`, `sim`; of tables
//! `check`, `repair`, `snapshot`, `restore`, `snapshots`, `table`; of a node `serve`, `user`, `key`, `import`.
//!
//! Results go to standard output, progress and notes to standard error. An error is one line, `error: …`, that names the
//! argument and the remedy. Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted. A reader that goes away
//! (`| head`) is no error.

mod arguments;
mod bench;
mod build;
mod calibrate;
mod check;
mod demo;
mod doctor;
mod failure;
mod import;
mod input;
mod interrupt;
mod measured;
mod numbers;
mod output;
mod progress;
mod repair;
mod restore;
mod search;
mod serve;
mod sim;
mod snapshot;
mod table;
mod tables;
mod users;

use clap::{CommandFactory, Parser};
use failure::Failure;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

/// Vector search that uses the whole CPU.
#[derive(Parser)]
#[command(name = "lanewise", version, propagate_version = true)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    Build(build::Build),
    Calibrate(calibrate::Calibrate),
    Search(search::Search),
    Bench(bench::Bench),
    Sim(sim::Sim),
    Check(check::Check),
    Repair(repair::Repair),
    Snapshot(snapshot::Snapshot),
    Snapshots(snapshot::Snapshots),
    Restore(restore::Restore),
    Table(tables::Tables),
    Serve(serve::Serve),
    User(users::Users),
    Import(import::Import),
    Key(users::Keys),
}

/// Runs the program with its arguments, the first of which is its own name. The exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut out = BufWriter::new(io::stdout().lock());
    let parsed = Program::try_parse_from(&args);
    let parsed = parsed.map_err(|error| Failure::of_arguments(&error, &command_name(&args)));
    let result = parsed.and_then(|program| match program.command {
        Command::Demo(demo) => demo.run(&mut out),
        Command::Doctor(doctor) => doctor.run(&mut out),
        Command::Build(build) => build.run(&mut out),
        Command::Calibrate(calibrate) => calibrate.run(&mut out),
        Command::Search(search) => search.run(&mut out),
        Command::Bench(bench) => bench.run(&mut out),
        Command::Sim(sim) => sim.run(&mut out),
        Command::Check(check) => check.run(&mut out),
        Command::Repair(repair) => repair.run(&mut out),
        Command::Snapshot(snapshot) => snapshot.run(&mut out),
        Command::Snapshots(snapshots) => snapshots.run(&mut out),
        Command::Restore(restore) => restore.run(&mut out),
        Command::Table(tables) => tables.run(&mut out),
        Command::Serve(serve) => serve.run(&mut out),
        Command::User(users) => users.run(&mut out),
        Command::Import(import) => import.run(&mut out),
        Command::Key(keys) => keys.run(&mut out),
    });
    // What was found before a failure is shown before its message.
    let flushed = out.flush().map_err(Failure::from);
    match result.and(flushed) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

/// `lanewise`, and the subcommands that the first arguments are: what to ask for help about.
fn command_name(args: &[OsString]) -> String {
    let program = Program::command();
    let (mut command, mut words) = (&program, vec!["lanewise"]);
    for name in args.iter().skip(1) {
        let Some(subcommand) = command.find_subcommand(name) else { break };
        words.push(subcommand.get_name());
        command = subcommand;
    }
    words.join(" ")
}

/// Tells the user something beside the results. A standard error that cannot be written to is no reason to fail.
fn say(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
