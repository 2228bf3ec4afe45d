//! Text of any kind gives a program or an error with a line, never a panic.

use streamsan_sim::{describe, parse_file, random, random_lifetimes};

#[test]
fn damaged_programs_give_errors() {
    let mut random_bytes = fastrand::Rng::with_seed(11);
    let pieces = [
        "[",
        "]",
        "..",
        "#",
        ":",
        "```",
        "\n",
        ",",
        ";",
        "->",
        "(1)",
        "step 8 run 4",
        "18446744073709551615",
        "0",
        "é",
        "host",
        "# error: [SS101] after (1)",
        "launch",
        "alloc x 8 in x",
        "host: free b2",
        "host: read b0",
        "in",
        "sync",
        "x",
        " ",
        "\u{0}",
    ];
    let (mut good, mut bad) = (0, 0);
    for seed in 0..20_000 {
        let program = if seed % 4 < 2 { random(seed) } else { random_lifetimes(seed) };
        let mut text = format!("# A\n\n```sim\n{program}```\n");
        for _ in 0..random_bytes.usize(1..4) {
            let place = random_bytes.usize(..=text.len());
            if text.is_char_boundary(place) {
                match random_bytes.u8(..3) {
                    0 => text.insert_str(place, pieces[random_bytes.usize(..pieces.len())]),
                    1 if place < text.len() => drop(text.remove(place)),
                    _ => text.truncate(place.max(10)),
                }
            }
        }
        match parse_file("a.md", &text) {
            Ok(_) => {
                good += 1;
                let schedule = [random_bytes.usize(..6), random_bytes.usize(..6), usize::MAX];
                let _ = describe("a.md", &text, None, (seed % 2 == 0).then_some(&schedule[..]));
            }
            Err(error) => {
                bad += 1;
                assert!(
                    error.line >= 1 && error.line as usize <= text.lines().count().max(1),
                    "{error}\n{text}"
                );
                assert!(!error.message.is_empty());
            }
        }
    }
    assert!(good > 500 && bad > 5000, "{good} good, {bad} bad");
}

#[test]
fn programs_that_are_too_large_are_refused() {
    let names: Vec<String> = (0..5000).map(|index| format!("s{index}")).collect();
    let streams = format!("# A\n```sim\nstreams {}\n```\n", names.join(", "));
    let error = parse_file("a.md", &streams).expect_err("5000 streams");
    assert_eq!(error.to_string(), "a.md:3: more than 4096 streams: make the program smaller");
    let buffers = names.iter().map(|name| format!("buffer {name} 4")).collect::<Vec<_>>().join("\n") + "\n";
    let error = parse_file("a.md", &format!("# A\n```sim\nstreams a\n{buffers}```\n"));
    assert!(error.expect_err("5000 buffers").to_string().contains("more than 4096 buffers"));
    let steps = format!("# A\n```sim\nstreams a\n{}```\n", "a: launch\n".repeat(3000));
    let error = describe("a.md", &steps, None, None).expect_err("3000 steps");
    assert!(error.message.contains("`A` has 3000 steps"), "{error}");
}
