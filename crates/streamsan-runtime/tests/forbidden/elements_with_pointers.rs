//! A buffer of references.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let _ = device.host_buffer::<&str>(4)?;
    drop(stream);
    Ok(())
}
