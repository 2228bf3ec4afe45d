//! Random programs on the CPU back end, with delays, against the same programs run serially; the checker reads
//! what was done. With any one needed wait left out, the checker must say so.
//!
//! `STREAMSAN_RUNTIME_PROGRAMS` and `STREAMSAN_RUNTIME_SEED` choose how many and which.

use fastrand::Rng;
use streamsan_check::{Config, Level, check};
use streamsan_runtime::{Buffer, CpuOptions, Device, HostBuffer, Stream};

const LENGTH: usize = 8;

/// One step of a program.
#[derive(Clone, Copy, Debug)]
enum Step {
    Upload {
        stream: usize,
        host: usize,
        buffer: usize,
    },
    Download {
        stream: usize,
        buffer: usize,
        host: usize,
    },
    Copy {
        stream: usize,
        from: usize,
        to: usize,
    },
    /// `to[i] += from[i] * factor + 1`
    Add {
        stream: usize,
        from: usize,
        to: usize,
        factor: i64,
    },
    HostWrite {
        host: usize,
        value: i64,
    },
    HostRead {
        host: usize,
    },
    /// Drops a buffer and makes another one in its place, with this owner, filled by its owner.
    Replace {
        buffer: usize,
        owner: usize,
        value: i64,
    },
    DropHost {
        host: usize,
    },
    Synchronize {
        stream: usize,
    },
}

#[derive(Clone, Debug)]
struct Program {
    streams: usize,
    buffers: usize,
    hosts: usize,
    steps: Vec<Step>,
}

fn program(random: &mut Rng) -> Program {
    let (streams, buffers, hosts) = (random.usize(1..5), random.usize(2..5), random.usize(1..4));
    let steps = (0..random.usize(4..40))
        .map(|_| {
            let (stream, host) = (random.usize(0..streams), random.usize(0..hosts));
            let from = random.usize(0..buffers);
            let to = (from + random.usize(1..buffers)) % buffers;
            match random.u8(0..16) {
                0..=2 => Step::Upload { stream, host, buffer: to },
                3..=5 => Step::Download { stream, buffer: from, host },
                6..=7 => Step::Copy { stream, from, to },
                8..=11 => Step::Add { stream, from, to, factor: random.i64(-3..4) },
                12 => Step::HostWrite { host, value: random.i64(0..100) },
                13 => Step::HostRead { host },
                14 => Step::Replace { buffer: from, owner: stream, value: random.i64(0..100) },
                _ if random.bool() => Step::DropHost { host },
                _ => Step::Synchronize { stream },
            }
        })
        .collect();
    Program { streams, buffers, hosts, steps }
}

/// What the host saw: every read in turn, then all buffers.
type Seen = Vec<Vec<i64>>;

fn serially(program: &Program) -> Seen {
    let mut buffers = vec![vec![0_i64; LENGTH]; program.buffers];
    let mut hosts = vec![vec![0_i64; LENGTH]; program.hosts];
    let mut seen = Vec::new();
    for step in &program.steps {
        match *step {
            Step::Upload { host, buffer, .. } => buffers[buffer].clone_from(&hosts[host]),
            Step::Download { buffer, host, .. } => hosts[host].clone_from(&buffers[buffer]),
            Step::Copy { from, to, .. } => {
                let (from, to) = pair(&mut buffers, from, to);
                to.clone_from(from);
            }
            Step::Add { from, to, factor, .. } => {
                let source = buffers[from].clone();
                for (target, source) in buffers[to].iter_mut().zip(source) {
                    *target = target.wrapping_add(source.wrapping_mul(factor).wrapping_add(1));
                }
            }
            Step::HostWrite { host, value } => hosts[host] = vec![value; LENGTH],
            Step::HostRead { host } => seen.push(hosts[host].clone()),
            Step::Replace { buffer, value, .. } => buffers[buffer] = vec![value; LENGTH],
            Step::DropHost { host } => hosts[host] = vec![0; LENGTH],
            Step::Synchronize { .. } => {}
        }
    }
    seen.extend(buffers);
    seen
}

fn filled(device: &Device, owner: &Stream, value: i64) -> Buffer<i64> {
    let mut buffer = device.buffer::<i64>(LENGTH, owner).unwrap();
    let mut fill = owner.operation("fill");
    let target = fill.write(&mut buffer);
    fill.run(move |memory| memory.slice_mut(target).fill(value)).unwrap();
    buffer
}

fn zeroed(device: &Device) -> HostBuffer<i64> {
    let mut buffer = device.host_buffer::<i64>(LENGTH).unwrap();
    buffer.write().unwrap().fill(0);
    buffer
}

/// Two different elements of a slice.
fn pair<T>(items: &mut [T], first: usize, second: usize) -> (&T, &mut T) {
    let [first, second] = items.get_disjoint_mut([first, second]).unwrap();
    (first, second)
}

/// Runs a program on a device that keeps a journal. Gives what the host saw, and the numbers of waits that keep
/// memory for a reuse that does not come at once: until it comes, another wait may do their work.
fn managed(program: &Program, device: &Device) -> (Seen, Vec<u64>) {
    device.start_journal();
    let mut early = Vec::new();
    let streams: Vec<Stream> =
        (0..program.streams).map(|at| device.stream(&format!("s{at}")).unwrap()).collect();
    let mut buffers: Vec<Buffer<i64>> =
        (0..program.buffers).map(|at| filled(device, &streams[at % streams.len()], 0)).collect();
    let mut owners: Vec<usize> = (0..program.buffers).map(|at| at % streams.len()).collect();
    let mut hosts: Vec<HostBuffer<i64>> = (0..program.hosts).map(|_| zeroed(device)).collect();
    let mut seen = Vec::new();
    for step in &program.steps {
        match *step {
            Step::Upload { stream, host, buffer } => {
                streams[stream].upload(&hosts[host], &mut buffers[buffer]).unwrap();
            }
            Step::Download { stream, buffer, host } => {
                streams[stream].download(&buffers[buffer], &mut hosts[host]).unwrap();
            }
            Step::Copy { stream, from, to } => {
                let (from, to) = pair(&mut buffers, from, to);
                streams[stream].copy(from, to).unwrap();
            }
            Step::Add { stream, from, to, factor } => {
                let (from, to) = pair(&mut buffers, from, to);
                let mut add = streams[stream].operation("add");
                let (source, target) = (add.read(from), add.update(to));
                add.run(move |memory| {
                    let target = memory.slice_mut(target);
                    for (target, source) in target.iter_mut().zip(memory.slice(source)) {
                        *target = target.wrapping_add(source.wrapping_mul(factor).wrapping_add(1));
                    }
                })
                .unwrap();
            }
            Step::HostWrite { host, value } => hosts[host].write().unwrap().fill(value),
            Step::HostRead { host } => seen.push(hosts[host].read().unwrap().to_vec()),
            Step::Replace { buffer, owner, value } => {
                let (old, before) = (buffers.swap_remove(buffer), device.waits());
                drop(old);
                if std::mem::replace(&mut owners[buffer], owner) != owner {
                    early.extend(before..device.waits());
                }
                let new = filled(device, &streams[owner], value);
                buffers.push(new);
                let last = buffers.len() - 1;
                buffers.swap(buffer, last);
            }
            Step::DropHost { host } => hosts[host] = zeroed(device),
            Step::Synchronize { stream } => streams[stream].synchronize().unwrap(),
        }
    }
    let mut last = Vec::new();
    for buffer in &buffers {
        let mut host = device.host_buffer::<i64>(LENGTH).unwrap();
        streams[0].download(buffer, &mut host).unwrap();
        seen.push(host.read().unwrap().to_vec());
        last.push(host);
    }
    // The rest is given back after the last operation.
    let whole = device.waits();
    drop(buffers);
    early.extend(whole..device.waits());
    (seen, early)
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn errors(device: &Device) -> usize {
    let report = check(&device.journal().unwrap(), &Config::default());
    report.findings.iter().filter(|finding| finding.rule.level() == Level::Error).count()
}

#[test]
fn equal_to_serial_execution_and_clean() {
    let (programs, first) =
        (number("STREAMSAN_RUNTIME_PROGRAMS", 1_000), number("STREAMSAN_RUNTIME_SEED", 0));
    for seed in first..first + programs {
        let program = program(&mut Rng::with_seed(seed));
        let device = Device::cpu(&CpuOptions { delays: Some(seed), ..CpuOptions::default() });
        assert_eq!(managed(&program, &device).0, serially(&program), "seed {seed}: {program:#?}");
        let report = check(&device.journal().unwrap(), &Config::default());
        assert!(report.findings.is_empty(), "seed {seed}: {program:#?}\n{:#?}", report.findings);
    }
}

#[test]
fn every_wait_is_needed() {
    let (programs, first) =
        (number("STREAMSAN_RUNTIME_PROGRAMS", 1_000) / 10, number("STREAMSAN_RUNTIME_SEED", 0));
    let mut left_out = 0;
    for seed in first..first + programs {
        let mut program = program(&mut Rng::with_seed(seed));
        // Whether a dropped host buffer's copies have finished is a question of time, and the answer orders.
        program.steps.retain(|step| !matches!(step, Step::DropHost { .. }));
        let whole = Device::cpu(&CpuOptions::default());
        let (_, early) = managed(&program, &whole);
        for wait in (0..whole.waits()).filter(|wait| !early.contains(wait)) {
            let broken = Device::cpu(&CpuOptions::default());
            broken.leave_out_wait(wait);
            managed(&program, &broken);
            assert!(errors(&broken) > 0, "seed {seed}, without wait {wait}: {program:#?}");
            left_out += 1;
        }
    }
    assert!(left_out > programs, "too few waits to say anything: {left_out}");
}
