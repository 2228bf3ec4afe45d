//! Reduction operators that multiply first: the only ones that change anything with one rank.

use std::ffi::{c_int, c_void};

use super::communicators::with;
use super::{Done, Failure, Status, answer, give};
use crate::protection::view;

/// The first number of an operator that a program makes; `ncclNumOps`.
const FIRST_MADE: c_int = 5;

/// A number type that can be multiplied; torch's process group makes such operators for these only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Float {
    Half,
    Single,
    Double,
    Brain,
}

/// A multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    float: Float,
    factor: Factor,
}

#[derive(Clone, Copy, Debug)]
enum Factor {
    Value(f64),
    /// In device memory, read when the operation runs.
    Device(usize),
}

impl Float {
    fn from_type(data_type: c_int) -> Result<Self, Failure> {
        Ok(match data_type {
            6 => Self::Half,
            7 => Self::Single,
            8 => Self::Double,
            9 => Self::Brain,
            _ => {
                return Err(Failure::argument(format!(
                    "numbers of NCCL's data type {data_type} cannot be multiplied before a sum"
                )));
            }
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::Half | Self::Brain => 2,
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// # Safety
    ///
    /// An element may be read at `address`.
    unsafe fn load(self, address: usize) -> f64 {
        // SAFETY: as the caller promises; device memory may be addressed at any byte here.
        unsafe {
            match self {
                Self::Half => f64::from(half_to_single((address as *const u16).read_unaligned())),
                Self::Brain => {
                    f64::from(f32::from_bits(u32::from((address as *const u16).read_unaligned()) << 16))
                }
                Self::Single => f64::from((address as *const f32).read_unaligned()),
                Self::Double => (address as *const f64).read_unaligned(),
            }
        }
    }

    /// # Safety
    ///
    /// An element may be written at `address`.
    unsafe fn store(self, address: usize, value: f64) {
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                Self::Half => (address as *mut u16).write_unaligned(single_to_half(value as f32)),
                Self::Brain => (address as *mut u16).write_unaligned(single_to_brain(value as f32)),
                Self::Single => (address as *mut f32).write_unaligned(value as f32),
                Self::Double => (address as *mut f64).write_unaligned(value),
            }
        }
    }
}

impl Scale {
    /// The device memory that holds the factor: its first byte and how many.
    pub fn device_bytes(&self) -> Option<(usize, usize)> {
        match self.factor {
            Factor::Value(_) => None,
            Factor::Device(address) => Some((address, self.float.bytes())),
        }
    }

    /// Multiplies `bytes` bytes at `source` into `destination`.
    ///
    /// # Safety
    ///
    /// The bytes may be read and written, and the factor read. The two are the same or do not overlap.
    pub unsafe fn apply(&self, destination: usize, source: usize, bytes: usize) {
        let factor = match self.factor {
            Factor::Value(value) => value,
            // SAFETY: as the caller promises, here and below.
            Factor::Device(address) => unsafe { self.float.load(view(address)) },
        };
        for offset in (0..bytes).step_by(self.float.bytes()) {
            // SAFETY: as above.
            unsafe { self.float.store(destination + offset, self.float.load(source + offset) * factor) };
        }
    }
}

/// What the operator number `operator` does to numbers of this type in a group of one.
pub fn scale_of(communicator: u64, operator: c_int, data_type: c_int) -> Result<Option<Scale>, Failure> {
    match operator {
        0..FIRST_MADE => Ok(None),
        _ => with(communicator, |known| {
            let scale = known.operators.get(&operator).copied().ok_or_else(|| {
                Failure::argument(format!("{operator} is no reduction operator of this communicator"))
            })?;
            if Float::from_type(data_type)? == scale.float {
                Ok(Some(scale))
            } else {
                Err(Failure::argument("a reduction operator was made for another data type"))
            }
        }),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclRedOpCreatePreMulSum(
    operator: *mut c_int,
    scalar: *const c_void,
    data_type: c_int,
    residence: c_int,
    communicator: u64,
) -> Status {
    answer(|| {
        let float = Float::from_type(data_type)?;
        if scalar.is_null() {
            return Err(Failure::argument("ncclRedOpCreatePreMulSum was called without a factor"));
        }
        let factor = match residence {
            0 => Factor::Device(scalar as usize),
            // SAFETY: the caller gives an element of the type that it names.
            1 => Factor::Value(unsafe { float.load(scalar as usize) }),
            _ => return Err(Failure::argument(format!("{residence} is no place of a factor"))),
        };
        let number = with(communicator, |known| {
            let number = known.operators.keys().max().map_or(FIRST_MADE, |last| last + 1);
            known.operators.insert(number, Scale { float, factor });
            Ok(number)
        })?;
        // SAFETY: the caller gives a place for the number.
        unsafe { give(operator, number) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclRedOpDestroy(operator: c_int, communicator: u64) -> Status {
    answer(|| -> Done {
        with(communicator, |known| {
            known.operators.remove(&operator).map(|_| ()).ok_or_else(|| {
                Failure::argument(format!("{operator} is no reduction operator of this communicator"))
            })
        })
    })
}

/// IEEE half precision as single, which holds each of its values.
fn half_to_single(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(half >> 10) & 0x1f, u32::from(half) & 0x3ff);
    let magnitude = match exponent {
        // Subnormal: the fraction in units of 2^-24.
        0 => (fraction as f32 * (-24_f32).exp2()).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The nearest half-precision number, ties to even.
fn single_to_half(single: f32) -> u16 {
    let bits = single.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = f32::from_bits(bits & 0x7fff_ffff);
    if magnitude.is_nan() {
        return sign | 0x7e00;
    }
    // The first value that rounds to infinity.
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    if magnitude < (-14_f32).exp2() {
        // Numbers from one half on are 2^-24 apart, as these are: the addition rounds, and counts such steps.
        return sign | ((magnitude + 0.5).to_bits() - 0.5_f32.to_bits()) as u16;
    }
    let rounded = magnitude.to_bits() + 0xfff + (magnitude.to_bits() >> 13 & 1);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

/// The nearest number of bfloat16, ties to even.
fn single_to_brain(single: f32) -> u16 {
    let bits = single.to_bits();
    if single.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_number_comes_back() {
        for half in 0..=u16::MAX {
            let single = half_to_single(half);
            let back = single_to_half(single);
            assert!(back == half || single.is_nan() && half_to_single(back).is_nan(), "{half:#x} {back:#x}");
            let brain = f32::from_bits(u32::from(half) << 16);
            assert!(single_to_brain(brain) == half || brain.is_nan());
        }
    }

    #[test]
    fn numbers_between_are_rounded_to_even() {
        assert_eq!(half_to_single(single_to_half(1.0 / 3.0)).to_bits(), 0.333_251_95_f32.to_bits());
        assert_eq!(single_to_half(2049.0), single_to_half(2048.0));
        assert_eq!(single_to_half(2051.0), single_to_half(2052.0));
        assert_eq!(single_to_half(65_519.0), 0x7bff);
        assert_eq!(single_to_half(-65_520.0), 0xfc00);
        assert_eq!(single_to_half((-25_f32).exp2()), 0);
        assert_eq!(single_to_half((-25_f32).exp2() * 1.5), 1);
        assert_eq!(single_to_half(6.103_5e-5), 0x0400, "rounds up to the first normal number");
        assert_eq!(single_to_brain(1.0 + 0.003_906_25), 0x3f80);
        assert_eq!(single_to_brain(1.0 + 0.004), 0x3f81);
        assert_eq!(single_to_brain(f32::MAX), 0x7f80);
    }

    #[test]
    fn a_factor_on_the_device_is_read_when_it_is_used() {
        let mut factor = 0.5_f32;
        let scale =
            Scale { float: Float::Single, factor: Factor::Device(std::ptr::addr_of!(factor) as usize) };
        assert_eq!(scale.device_bytes(), Some((std::ptr::addr_of!(factor) as usize, 4)));
        let numbers = [2.0_f32, -6.0];
        let mut scaled = [0.0_f32; 2];
        factor += 1.0;
        // SAFETY: two numbers each.
        unsafe { scale.apply(scaled.as_mut_ptr() as usize, numbers.as_ptr() as usize, 8) };
        assert_eq!(scaled.map(f32::to_bits), [3.0_f32, -9.0].map(f32::to_bits));
        assert_eq!(factor.to_bits(), 1.5_f32.to_bits());
    }
}
