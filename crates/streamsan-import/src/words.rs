//! Times, sizes and counts as people read them.

/// `640 ns`, `12.3 us`, `1.41 ms`, `143 ms`, `2.34 s`.
pub(crate) fn time(nanoseconds: u64) -> String {
    if nanoseconds < 1000 {
        return format!("{nanoseconds} ns");
    }
    // In seconds digits are grouped, and there are no larger units.
    if nanoseconds >= 999_500_000_000 {
        return format!("{} s", grouped(nanoseconds.saturating_add(500_000_000) / 1_000_000_000));
    }
    let mut value = nanoseconds as f64;
    let mut unit = "ns";
    for next in ["us", "ms", "s"] {
        // 999.6 would be printed as 1000.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if value < 9.995 {
        format!("{value:.2} {unit}")
    } else if value < 99.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 kernel`, `24 kernels`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// `4 bytes`, `1.0 MiB`.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1024 {
        return counted(number, "byte", "bytes");
    }
    let mut value = number as f64 / 1024.0;
    let mut unit = "KiB";
    for next in ["MiB", "GiB", "TiB", "PiB", "EiB"] {
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// `7.8 %`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Gigabytes (10^9) in a second.
pub(crate) fn rate(bytes: u64, nanoseconds: u64) -> f64 {
    bytes as f64 / nanoseconds.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{bytes, counted, percent, rate, time};

    #[test]
    fn reads_well() {
        for (nanoseconds, wanted) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1000, "1.00 us"),
            (9_996, "10.0 us"),
            (99_960, "100 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (1_412_700, "1.41 ms"),
            (143_000_000, "143 ms"),
            (2_340_000_000, "2.34 s"),
            (1_234_567_000_000_000, "1,234,567 s"),
        ] {
            assert_eq!(time(nanoseconds), wanted);
        }
        assert_eq!(counted(1, "kernel", "kernels"), "1 kernel");
        assert_eq!(
            (bytes(4).as_str(), bytes(1 << 20).as_str(), bytes(1023 << 10).as_str()),
            ("4 bytes", "1.0 MiB", "1023.0 KiB")
        );
        assert_eq!(percent(1, 0), "100.0 %");
        assert!((rate(50_000, 1000) - 50.0).abs() < 1e-9);
    }
}
