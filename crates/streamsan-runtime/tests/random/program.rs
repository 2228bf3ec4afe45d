//! Random programs over streams and buffers, run by the runtime and serially. Shared by the back ends' tests.

use fastrand::Rng;
use streamsan_runtime::{Buffer, Device, HostBuffer, Stream};

/// Elements of each buffer.
pub const LENGTH: usize = 8;

/// What a back end computes with: functions on threads, copies and fills by the driver.
pub trait Arithmetic {
    /// What an element is after a fill with this value.
    fn filled(value: i64) -> i64;
    /// What `add` does, on the host.
    fn combine(target: &mut [i64], source: &[i64], factor: i64);
    /// Submits a fill.
    fn fill(&self, stream: &Stream, buffer: &mut Buffer<i64>, value: i64);
    /// Submits an operation that reads one buffer and changes another one.
    fn add(&self, stream: &Stream, from: &Buffer<i64>, to: &mut Buffer<i64>, factor: i64);
}

/// One step of a program.
#[derive(Clone, Copy, Debug)]
pub enum Step {
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
    /// See [`Arithmetic::combine`].
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
pub struct Program {
    streams: usize,
    buffers: usize,
    hosts: usize,
    pub steps: Vec<Step>,
}

/// A random program.
pub fn program(random: &mut Rng) -> Program {
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
pub type Seen = Vec<Vec<i64>>;

/// Runs a program on the host alone.
pub fn serially<A: Arithmetic>(program: &Program) -> Seen {
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
                A::combine(&mut buffers[to], &source, factor);
            }
            Step::HostWrite { host, value } => hosts[host] = vec![value; LENGTH],
            Step::HostRead { host } => seen.push(hosts[host].clone()),
            Step::Replace { buffer, value, .. } => buffers[buffer] = vec![A::filled(value); LENGTH],
            Step::DropHost { host } => hosts[host] = vec![0; LENGTH],
            Step::Synchronize { .. } => {}
        }
    }
    seen.extend(buffers);
    seen
}

fn filled(device: &Device, owner: &Stream, value: i64, arithmetic: &impl Arithmetic) -> Buffer<i64> {
    let mut buffer = device.buffer::<i64>(LENGTH, owner).unwrap();
    arithmetic.fill(owner, &mut buffer, value);
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
pub fn managed<A: Arithmetic>(program: &Program, device: &Device, arithmetic: &A) -> (Seen, Vec<u64>) {
    device.start_journal();
    let mut early = Vec::new();
    let streams: Vec<Stream> =
        (0..program.streams).map(|at| device.stream(&format!("s{at}")).unwrap()).collect();
    let mut buffers: Vec<Buffer<i64>> =
        (0..program.buffers).map(|at| filled(device, &streams[at % streams.len()], 0, arithmetic)).collect();
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
                arithmetic.add(&streams[stream], from, to, factor);
            }
            Step::HostWrite { host, value } => hosts[host].write().unwrap().fill(value),
            Step::HostRead { host } => seen.push(hosts[host].read().unwrap().to_vec()),
            Step::Replace { buffer, owner, value } => {
                let (old, before) = (buffers.swap_remove(buffer), device.waits());
                drop(old);
                if std::mem::replace(&mut owners[buffer], owner) != owner {
                    early.extend(before..device.waits());
                }
                let new = filled(device, &streams[owner], value, arithmetic);
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
