//! The text of `streamsan sim`.

use streamsan_sim::describe;

const FILE: &str = "# Loader\n\n## Bad\n\n```sim\nstreams default, side\nbuffer x 4MiB\ndefault: write x\nside: read x\n```\n\n## Fix\n\n```sim\nstreams default, side\nbuffer x 4MiB\ndefault: write x\nhost: sync default\nside: read x\n```\n";

#[test]
fn it_says_what_can_swap_and_how_to_see_it() {
    let text = describe("loader.md", FILE, None, None).unwrap();
    let expected = "\
loader.md:5: Loader / Bad
  1 pair of conflicting operations can execute in either order; all schedules (4 states)
  (1) line 8    default: write x
  (2) line 9    side: read x
      (1) first: streamsan sim loader.md --test \"Loader / Bad\" --schedule 0,0,1,2
      (2) first: streamsan sim loader.md --test \"Loader / Bad\" --schedule 0,0,2,1

loader.md:14: Loader / Fix
  no conflicting operations can swap; all schedules (3 states)
";
    assert_eq!(text, expected);
}

#[test]
fn it_replays_a_schedule() {
    let text = describe("loader.md", FILE, Some("Loader / Bad"), Some(&[0, 0, 2])).unwrap();
    let expected = "\
loader.md:5: Loader / Bad
  operations in the order in which they executed:
    line 9    side: read x
    line 8    default: write x
  schedule: 0,0,2,1
";
    assert_eq!(text, expected);
}

#[test]
fn mistakes_say_what_to_do() {
    let error =
        |name, schedule: Option<&[usize]>| describe("f.md", FILE, name, schedule).unwrap_err().to_string();
    assert_eq!(
        error(Some("Good"), None),
        "f.md: no test with that name; there are:\n  Loader / Bad\n  Loader / Fix"
    );
    assert_eq!(error(None, Some(&[0])), "f.md: a schedule is for one test: name it with --test");
    assert!(
        error(Some("Fix"), Some(&[0, 2]))
            .starts_with("f.md: choice 2 of the schedule is 2, which cannot act")
    );
    assert_eq!(
        describe("f.md", "# A\n", None, None).unwrap_err().to_string(),
        "f.md: no sim block in this file"
    );
}
