//! `streamsan run`: what it refuses, what it gives the program, and the status it ends with.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use support::{BAD, GOOD, NOTHING, Workplace};

/// A "script" that leaves the trace which the recorder would have written.
fn leaves(workplace: &Workplace, program: &str, rest: &str) {
    workplace.trace("recorded", program);
    workplace.write("train.py", format!("cp recorded \"$STREAMSAN_TRACE\"\n{rest}\n"));
}

#[test]
fn statuses() {
    let workplace = Workplace::new();
    let cases = [
        (BAD, "", "", 66),
        (BAD, "", "--error-exitcode 7", 7),
        (BAD, "", "--no-check", 0),
        (BAD, "exit 3", "", 3),
        (BAD, "kill -9 $$", "", 137),
        (BAD, "kill -9 $$", "--no-check", 137),
        (GOOD, "", "", 0),
        (GOOD, "exit 3", "", 3),
        (NOTHING, "", "", 4),
        (NOTHING, "", "--no-check", 4),
        (NOTHING, "exit 3", "", 3),
    ];
    for (program, rest, options, code) in cases {
        leaves(&workplace, program, rest);
        let said = workplace.run(&format!("run {options} --force -o run.sstrace train.py"));
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{rest} {options}\n{}", said.stderr);
    }
}

#[test]
fn report_goes_to_standard_error_and_the_program_keeps_its_output() {
    let workplace = Workplace::new();
    leaves(&workplace, BAD, "echo loss 0.5; echo a warning >&2");
    let said = workplace.run("run -o run.sstrace train.py");
    assert_eq!((said.code, said.stdout.as_str()), (66, "loss 0.5\n"));
    insta::assert_snapshot!(said.stderr);
}

#[test]
fn clean_run() {
    let workplace = Workplace::new();
    leaves(&workplace, GOOD, "");
    insta::assert_snapshot!(workplace.run("run -o run.sstrace train.py").stderr);
}

#[test]
fn killed_program_is_checked() {
    let workplace = Workplace::new();
    leaves(&workplace, BAD, "kill -9 $$");
    let said = workplace.run("run -o run.sstrace train.py");
    assert!(
        said.stderr.contains("streamsan> the program was ended by SIGKILL (status 137, which is kept)\n"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("error[SS101]"), "{}", said.stderr);
}

#[test]
fn no_trace_at_all() {
    let workplace = Workplace::new();
    workplace.write("train.py", "echo hello");
    let said = workplace.run("run -o run.sstrace train.py");
    assert_eq!((said.code, said.stdout.as_str()), (4, "hello\n"));
    insta::assert_snapshot!(said.stderr);
    workplace.write("train.py", "exit 9");
    assert_eq!(workplace.run("run -o run.sstrace train.py").code, 9);
}

#[test]
fn nothing_on_a_device() {
    let workplace = Workplace::new();
    leaves(&workplace, NOTHING, "");
    insta::assert_snapshot!(workplace.run("run -o run.sstrace train.py").stderr);
    leaves(&workplace, NOTHING, "echo SyntaxError >&2; exit 1");
    let said = workplace.run("run --force -o run.sstrace train.py").stderr;
    let expected = "streamsan> recording to run.sstrace on the virtual device\nSyntaxError\n\
                    streamsan> the program exited with status 1, which is kept\n\
                    streamsan> no CUDA operation was recorded before\n";
    assert_eq!(said, expected);
}

#[test]
fn says_when_the_failure_may_be_its_own() {
    let workplace = Workplace::new();
    workplace.trace("recorded", GOOD);
    let mut trace = streamsan_trace::file::read(&workplace.path("recorded")).unwrap();
    let detail = trace.tables.intern_string("cudaGraphAddKernelNode");
    let mut event = *trace.events.last().unwrap();
    event.number.0 += 1;
    event.kind =
        streamsan_trace::EventKind::Gap { reason: streamsan_trace::GapReason::UnsupportedCall, detail };
    trace.events.push(event);
    streamsan_trace::file::write(&trace, &workplace.path("recorded")).unwrap();
    workplace.write("train.py", "cp recorded \"$STREAMSAN_TRACE\"; exit 1");
    let said = workplace.run("run -o run.sstrace train.py").stderr;
    let expected = "streamsan> the program exited with status 1, which is kept\n\
                    streamsan> it may have failed because of streamsan, which does not model cudaGraphAddKernelNode yet; what it did until then was checked\n";
    let before = said.find(expected).expect(&said);
    assert!(before < said.find("No hazards").expect(&said), "{said}");
    assert!(
        said.contains("\nstreamsan> the program failed; until then: no hazards in what was seen. "),
        "{said}"
    );
}

#[test]
fn program_gets_its_arguments_and_the_environment() {
    let workplace = Workplace::new();
    let show = "echo \"$@\"; echo $LD_PRELOAD; echo $LD_LIBRARY_PATH; echo $PYTHONPATH; echo $STREAMSAN_TRACE; \
                echo $STREAMSAN_DEVICE $STREAMSAN_DEVICE_MEMORY $STREAMSAN_DEVICE_COUNT";
    workplace.write("train.py", show);
    let mut command = workplace
        .command("run --device-memory 1GiB --device-count 2 -o run.sstrace train.py --lr 3 -o x -- -m y");
    command.env("PYTHONPATH", "/mine").env("LD_LIBRARY_PATH", "/theirs");
    let said = workplace.said(command.output().unwrap());
    let expected = [
        "--lr 3 -o x -- -m y",
        "DIR/package/lib/libstreamsan_device.so",
        "DIR/package/lib/virtual:/theirs",
        "DIR/package/_startup:/mine",
        "DIR/run.sstrace",
        "virtual 1073741824 2",
    ];
    assert_eq!(said.stdout.lines().collect::<Vec<_>>(), expected, "{}", said.stderr);
}

#[test]
fn takes_a_gpu_if_there_is_one() {
    let workplace = Workplace::new();
    workplace.fact("torch_hip=", "torch_hip=\ngpu_count=2\ngpu_name=NVIDIA H200\ngpu_driver=13.0");
    let show = "echo $LD_PRELOAD; echo $LD_LIBRARY_PATH; echo $STREAMSAN_DEVICE $STREAMSAN_DEVICE_COUNT";
    workplace.write("train.py", show);
    for option in ["", "--device auto", "--device cuda"] {
        let mut command = workplace.command(&format!("run {option} -o run.sstrace train.py"));
        command.env("LD_LIBRARY_PATH", "/theirs");
        let said = workplace.said(command.output().unwrap());
        let expected = ["DIR/package/lib/libstreamsan_forward.so", "/theirs", "cuda 2"];
        assert_eq!(said.stdout.lines().collect::<Vec<_>>(), expected, "{}", said.stderr);
        let taken = "streamsan> recording to run.sstrace on the GPU (2 of NVIDIA H200)\n";
        assert!(said.stderr.starts_with(taken), "{}", said.stderr);
    }
    for option in ["--device virtual", "--device-memory 1GiB"] {
        let said = workplace.run(&format!("run {option} -o run.sstrace train.py"));
        assert!(said.stdout.starts_with("DIR/package/lib/libstreamsan_device.so"), "{}", said.stdout);
    }
}

#[test]
fn modules_and_commands() {
    let workplace = Workplace::new();
    // The stand-in interpreter hands everything to sh, which knows -m.
    workplace.program("python", "if [ \"$1\" = -c ]; then cat \"${0%/*}/facts\"; exit; fi\necho \"$@\"");
    let said = workplace.run("run -o run.sstrace -m package.train --lr 3 -o x");
    assert_eq!(said.stdout, "-m package.train --lr 3 -o x\n");
    let said = workplace.run("run -o run.sstrace -- echo -m one -- two");
    assert_eq!(said.stdout, "-m one -- two\n");
}

#[test]
fn default_name_of_the_trace() {
    let workplace = Workplace::new();
    leaves(&workplace, GOOD, "");
    let said = workplace.run("run train.py");
    assert_eq!(said.code, 0, "{}", said.stderr);
    let names: Vec<String> = std::fs::read_dir(workplace.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".sstrace"))
        .collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    assert!(name.starts_with("streamsan-train-"), "{name}");
    assert!(said.stderr.starts_with(&format!("streamsan> recording to {name} ")), "{}", said.stderr);
}

#[test]
fn refuses_what_cannot_work() {
    let workplace = Workplace::new();
    workplace.write("train.py", "echo never");
    workplace.write("folder/x", "");
    workplace.write("old.sstrace", "precious");
    let install =
        "help: no GPU is needed, but the CUDA 13 build of torch is, which `pip install torch` gives on Linux";
    workplace.refuses(
        "run nope.py",
        "error: cannot run nope.py: there is no such script\nhelp: the path is taken from DIR",
    );
    workplace.refuses(
        "run sh",
        "error: cannot run sh: there is no such script\nhelp: for a command write: streamsan run -- sh ...",
    );
    workplace.refuses(
        "run folder",
        "error: cannot run folder: it is a directory without a __main__.py\nhelp: name a script in it",
    );
    workplace.refuses(
        "run -- nope",
        "error: cannot run nope: there is no such command\nhelp: for a script leave out the `--`: streamsan run SCRIPT",
    );
    workplace.refuses(
        "run --device cuda train.py",
        "error: cannot record on a GPU: the CUDA driver gives no answer\nhelp: --device virtual records the same program without a GPU",
    );
    workplace.refuses(
        "run --device cuda --device-count 2 train.py",
        "error: --device-count is for the virtual device, and --device cuda is not\nhelp: --device virtual records the same program without a GPU",
    );
    workplace.refuses(
        "run -o old.sstrace train.py",
        "error: old.sstrace exists\nhelp: choose another name, or overwrite it with --force",
    );
    workplace.refuses(
        "run --force -o train.py train.py",
        "error: cannot write train.py: the file that is there is no trace\n\
         help: choose another name; --force replaces traces only",
    );
    std::os::unix::fs::symlink("nowhere", workplace.path("link.sstrace")).unwrap();
    workplace.refuses(
        "run --force -o link.sstrace train.py",
        "error: cannot write link.sstrace: it is no regular file\nhelp: choose another name",
    );
    assert!(workplace.path("link.sstrace").is_symlink());
    assert_eq!(workplace.read("old.sstrace"), "precious");
    workplace.refuses(
        "run -o no/run.sstrace train.py",
        "error: cannot write no/run.sstrace: there is no folder no\nhelp: mkdir -p no",
    );
    workplace.refuses(
        "run -o folder train.py",
        "error: cannot write folder: it is a directory\nhelp: name a file in it",
    );
    workplace.fact("torch_cuda=13.0", "torch_cuda=12.8");
    workplace.refuses(
        "run train.py",
        &format!("error: torch 2.11.0+cu130 in Python 3.11.2 (/usr/bin/python3) is built for CUDA 12.8; this streamsan works with CUDA 13\n{install}"),
    );
    workplace.fact("torch_cuda=12.8", "torch_cuda=");
    workplace.refuses(
        "run train.py",
        &format!(
            "error: torch 2.11.0+cu130 in Python 3.11.2 (/usr/bin/python3) is a CPU-only build\n{install}"
        ),
    );
    workplace.fact("torch_folder=/site/torch", "torch_folder=");
    workplace.refuses(
        "run train.py",
        "error: there is no torch in Python 3.11.2 (/usr/bin/python3)\nhelp: install it there (pip install torch), or use the streamsan of the environment that has it",
    );
    workplace.fact("libc=glibc 2.36", "libc=");
    workplace.refuses(
        "run train.py",
        "error: cannot record here: this Python uses musl or another C library\nhelp: use a Python for glibc, such as that of Debian, Ubuntu, Fedora or conda",
    );
    workplace.fact("machine=x86_64", "machine=aarch64");
    workplace.refuses(
        "run train.py",
        "error: cannot record here: this is linux on aarch64\nhelp: recording needs Linux on x86-64; traces from there can be checked here: streamsan check",
    );
    workplace.program("python", "echo 'no module named encodings' >&2; exit 1");
    workplace.refuses(
        "run train.py",
        "error: the Python interpreter DIR/python does not work: no module named encodings",
    );
    std::fs::remove_file(workplace.path("python")).unwrap();
    workplace.refuses(
        "run train.py",
        "error: cannot start the Python interpreter DIR/python: it was not found\nhelp: install streamsan into the environment of the program, or set STREAMSAN_PYTHON",
    );
}

#[test]
fn refuses_an_incomplete_installation() {
    let workplace = Workplace::new();
    workplace.write("train.py", "echo never");
    let again = "help: install it again: pip install --force-reinstall . in a clone of streamsan";
    for part in [
        "_startup/sitecustomize.py",
        "lib/virtual/libcuda.so.1",
        "lib/libstreamsan_forward.so",
        "lib/libstreamsan_device.so",
    ] {
        std::fs::remove_file(workplace.path("package").join(part)).unwrap();
        let message = format!(
            "error: this installation of streamsan is incomplete: there is no DIR/package/{part}\n{again}"
        );
        workplace.refuses("run train.py", &message);
    }
}

#[test]
fn signals_reach_the_program() {
    let workplace = Workplace::new();
    for (signal, name, code) in [(Signal::TERM, "TERM", 143), (Signal::HUP, "HUP", 129)] {
        leaves(&workplace, GOOD, "echo ready; exec sleep 60");
        let mut child = workplace.command("run --force -o run.sstrace train.py").spawn().unwrap();
        wait_for_ready(&mut child);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let said = workplace.said(child.wait_with_output().unwrap());
        assert_eq!(said.code, code, "{}", said.stderr);
        assert!(said.stderr.contains(&format!("ended by SIG{name}")), "{}", said.stderr);
        assert!(said.stderr.contains("No hazards"), "{}", said.stderr);
    }
    // A program that cleans up keeps its own status.
    leaves(&workplace, BAD, "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done");
    let mut command = workplace.command("run --force -o run.sstrace train.py");
    // Not in the foreground of a terminal, or Ctrl-C would be taken to reach the program by itself.
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    wait_for_ready(&mut child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = workplace.said(child.wait_with_output().unwrap());
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert!(said.stderr.contains("error[SS101]"), "{}", said.stderr);
}

fn wait_for_ready(child: &mut std::process::Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
}

#[test]
fn a_trace_with_a_part_lost_is_not_clean() {
    let workplace = Workplace::new();
    workplace.trace("recorded", GOOD);
    let mut trace = streamsan_trace::file::read(&workplace.path("recorded")).unwrap();
    let detail = trace.tables.intern_string("the trace could not be written from #7 on");
    let mut event = *trace.events.last().unwrap();
    event.number.0 += 1;
    event.kind = streamsan_trace::EventKind::Gap { reason: streamsan_trace::GapReason::Lost, detail };
    trace.events.push(event);
    streamsan_trace::file::write(&trace, &workplace.path("recorded")).unwrap();
    workplace.write("train.py", "cp recorded \"$STREAMSAN_TRACE\"; exit $1");
    let said = workplace.run("run -o run.sstrace train.py 0");
    assert_eq!(said.code, 4, "{}", said.stderr);
    let expected = "\nstreamsan> no hazards in what was seen (events were lost, see above). ";
    assert!(said.stderr.contains(expected) && said.stderr.contains("from #7 on"), "{}", said.stderr);
    let said = workplace.run("run --force --no-check -o run.sstrace train.py 0");
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(said.stderr.contains("streamsan> recorded, but events were lost. "), "{}", said.stderr);
    assert_eq!(workplace.run("run --force -o run.sstrace train.py 3").code, 3);
    for arguments in ["check run.sstrace", "check --exit-zero run.sstrace"] {
        let said = workplace.run(arguments);
        assert_eq!(said.code, 4, "{}", said.stdout);
    }
}
