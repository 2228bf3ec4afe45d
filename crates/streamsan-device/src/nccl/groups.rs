//! Operations of a group begin together, when the outermost group of the thread ends.

use std::cell::RefCell;
use std::ffi::c_void;

use streamsan_record::collectives::Collective;

use super::operations::Request;
use super::{Done, Failure, Status, answer, unsupported};

#[derive(Default)]
struct Group {
    depth: u32,
    waiting: Vec<Request>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// Begins an operation, or has it wait for the end of the thread's group.
pub fn enqueue(request: Request) -> Done {
    let in_group = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(request);
        }
        group.waiting.push(request);
        None
    });
    in_group.map_or(Ok(()), |alone| run(vec![alone]))
}

/// Runs operations in their order. What is sent to oneself is received by the receive with the same number.
fn run(requests: Vec<Request>) -> Done {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for request in requests {
        match request.movement.what {
            Collective::Send => sends.push(request),
            Collective::Receive => receives.push(request),
            _ => request.run()?,
        }
    }
    let mut pairs = Vec::new();
    for receive in receives {
        let fits = |send: &Request| send.communicator == receive.communicator;
        let Some(place) = sends.iter().position(fits) else {
            return Err(Failure::usage(
                "a receive from oneself has no send in its group: it would wait for ever",
            ));
        };
        pairs.push(Request::pair(&sends.remove(place), &receive)?);
    }
    if !sends.is_empty() {
        return Err(Failure::usage("a send to oneself has no receive in its group: it would wait for ever"));
    }
    pairs.iter().try_for_each(Request::run)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn ncclGroupStart() -> Status {
    answer(|| {
        GROUP.with_borrow_mut(|group| group.depth += 1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn ncclGroupEnd() -> Status {
    answer(|| {
        let waiting = GROUP.with_borrow_mut(|group| {
            group.depth = group.depth.checked_sub(1)?;
            Some(if group.depth == 0 { std::mem::take(&mut group.waiting) } else { Vec::new() })
        });
        run(waiting.ok_or_else(|| Failure::usage("ncclGroupEnd was called without ncclGroupStart"))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupSimulateEnd(_information: *mut c_void) -> Status {
    GROUP.with_borrow_mut(|group| *group = Group::default());
    answer(|| unsupported("ncclGroupSimulateEnd"))
}
