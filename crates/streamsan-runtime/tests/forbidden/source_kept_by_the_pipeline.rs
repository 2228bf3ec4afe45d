//! Items are used after they were moved into a pipeline.

use streamsan_runtime::{CpuOptions, Device, Pipeline, PipelineOptions};

fn main() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::<f32>::new(&device, &PipelineOptions::default()).unwrap();
    let items = vec![vec![1.0_f32; 4]; 9];
    pipeline.run(items.into_iter().map(Ok::<_, String>), |_, _| Ok(()), |_, _| {});
    println!("{}", items.len());
}
