//! The runtime on a GPU: a pipeline over page-locked items, checked bit by bit and timed, and random programs
//! against serial execution.
//!
//! `cargo run --release -p streamsan-runtime --features cuda --example gpu`

use cudarc::driver::sys;
use std::ffi::{CString, c_void};
use std::ptr::{from_mut, null_mut};
use streamsan_runtime::{Buffer, Device, Error, HostBuffer, Pipeline, PipelineOptions, Stream};

/// `x = x * 2 + 1` for each of `n` floats, a thread each, with a loop of `turns` for the time it takes.
const KERNEL: &str = r"
.version 7.0
.target sm_70
.address_size 64
.visible .entry affine(.param .u64 data, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %d<4>;
    .reg .f32 %f<3>;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %d2, %d1;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d2, %d2, %d3;
    ld.global.f32 %f1, [%d2];
    fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
    st.global.f32 [%d2], %f2;
DONE:
    ret;
}
";

#[derive(Clone, Copy)]
struct Kernel(sys::CUfunction);

impl Kernel {
    fn load() -> Self {
        let text = CString::new(KERNEL).expect("no zero byte");
        let (mut module, mut function) = (null_mut(), null_mut());
        // SAFETY: a context is current (`Device::within`), the text is a module, places for the results.
        unsafe {
            assert_eq!(
                sys::cuModuleLoadData(&raw mut module, text.as_ptr().cast()),
                sys::CUresult::CUDA_SUCCESS
            );
            let found = sys::cuModuleGetFunction(&raw mut function, module, c"affine".as_ptr());
            assert_eq!(found, sys::CUresult::CUDA_SUCCESS);
        }
        Self(function)
    }

    /// Enqueues it over a buffer, `passes` times.
    fn apply(self, compute: &Stream, buffer: &mut Buffer<f32>, passes: usize) -> Result<(), Error> {
        let mut operation = compute.operation("affine");
        let token = operation.update(buffer);
        // SAFETY: the kernel goes to the given stream and touches the buffer only.
        unsafe {
            operation.launch::<Error>(|launch| {
                let (mut address, count) = launch.write(&token);
                let mut count = count as u32;
                let mut parameters: [*mut c_void; 2] =
                    [from_mut(&mut address).cast(), from_mut(&mut count).cast()];
                for _ in 0..passes {
                    let code = sys::cuLaunchKernel(
                        self.0,
                        count.div_ceil(256),
                        1,
                        1,
                        256,
                        1,
                        1,
                        0,
                        launch.stream().cast(),
                        parameters.as_mut_ptr(),
                        null_mut(),
                    );
                    assert_eq!(code, sys::CUresult::CUDA_SUCCESS);
                }
                Ok(())
            })?
        }
    }
}

/// The same on the host.
fn expected(value: f32, passes: usize) -> f32 {
    (0..passes).fold(value, |value, _| value.mul_add(2.0, 1.0))
}

fn filled(device: &Device, elements: usize, value: f32) -> HostBuffer<f32> {
    let mut buffer = device.host_buffer(elements).expect("page-locked memory");
    buffer.write().expect("no copy is under way").fill(value);
    buffer
}

fn main() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: {error}");
            return;
        }
    };
    let kernel = device.within(Kernel::load).expect("the device has a context");
    for (mib, items) in [(1_usize, 1024_usize), (16, 256), (64, 64)] {
        for passes in [1, 8] {
            let elements = (mib << 20) / 4;
            let sources: Vec<_> =
                (0..items).map(|item| filled(&device, elements, (item % 5) as f32)).collect();
            let mut results: Vec<_> = (0..items).map(|_| filled(&device, elements, -1.0)).collect();
            let options = PipelineOptions { item: elements, memory: 1 << 30, ..PipelineOptions::default() };
            let mut pipeline = Pipeline::<f32>::new(&device, &options).expect("slots fit");
            let mut times = Vec::new();
            for _ in 0..4 {
                let (statistics, failed) = pipeline
                    .run_in_place(&sources, &mut results, |compute, buffer| {
                        kernel.apply(compute, buffer, passes)
                    })
                    .expect("as many results as items");
                assert!(failed.is_empty(), "{failed:?}");
                times.push(statistics.seconds);
            }
            for (item, result) in results.iter().enumerate() {
                let value = expected((item % 5) as f32, passes);
                assert!(
                    result.read().expect("done").iter().all(|&found| found.to_bits() == value.to_bits()),
                    "item {item} is wrong"
                );
            }
            times.remove(0);
            times.sort_by(f64::total_cmp);
            let bytes = (2 * items * (mib << 20)) as f64;
            println!(
                "{mib} MiB x {items}, {passes} passes, {} slots: {:.4} s, {:.1} GB/s both ways, {:.1} us an item; every byte right",
                pipeline.plan().slots,
                times[1],
                bytes / times[1] / 1e9,
                times[1] / items as f64 * 1e6
            );
        }
    }
}
