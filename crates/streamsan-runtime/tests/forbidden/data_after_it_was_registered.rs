//! A vector is used while it is registered, when copies may be under way.

use streamsan_runtime::{CpuOptions, Device};

fn main() {
    let device = Device::cpu(&CpuOptions::default());
    let mut weights = vec![1.0_f32; 4];
    let registered = device.register(weights);
    weights[0] = 2.0;
    drop(registered);
}
