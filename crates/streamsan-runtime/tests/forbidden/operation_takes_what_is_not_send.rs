//! An operation, which runs on another thread, takes what must stay on its own.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let count = std::rc::Rc::new(1);
    stream.operation("count").run(move |_| println!("{count}"))?;
    Ok(())
}
