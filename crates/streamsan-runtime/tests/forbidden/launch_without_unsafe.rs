//! Kernels, which nobody can check, are launched by safe code.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let _ = stream.operation("launch").launch::<Error>(|_| Ok(()))?;
    Ok(())
}
