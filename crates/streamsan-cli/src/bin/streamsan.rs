//! The command, for development. The wheel starts the same function from Python.

fn main() {
    std::process::exit(streamsan_cli::main(std::env::args_os().collect()));
}
