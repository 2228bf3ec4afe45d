//! Things of two devices used together: the types do not tell them apart, so each call says so.

use streamsan_runtime::{CpuOptions, Device, Error};

#[test]
fn parts_of_another_device_are_refused() {
    let [own, other] = [(); 2].map(|()| Device::cpu(&CpuOptions::default()));
    let (stream, foreign) = (own.stream("own").unwrap(), other.stream("other").unwrap());
    let host = own.host_buffer::<u8>(4).unwrap();
    let mut foreign_host = other.host_buffer::<u8>(4).unwrap();
    let mut buffer = own.buffer::<u8>(4, &stream).unwrap();
    let mut foreign_buffer = other.buffer::<u8>(4, &foreign).unwrap();
    let refused = Err(Error::OtherDevice);
    assert_eq!(own.buffer::<u8>(4, &foreign).map(|_| ()), refused);
    assert_eq!(foreign.upload(&host, &mut buffer), refused);
    assert_eq!(stream.upload(&foreign_host, &mut buffer), refused);
    assert_eq!(stream.upload(&host, &mut foreign_buffer), refused);
    assert_eq!(stream.download(&buffer, &mut foreign_host), refused);
    assert_eq!(stream.copy(&foreign_buffer, &mut buffer), refused);
    assert_eq!(stream.wait(&foreign.record().unwrap()), refused);
    let mut operation = stream.operation("both");
    let (from, to) = (operation.read(&foreign_buffer), operation.update(&mut buffer));
    let copied = operation.run(move |memory| memory.slice_mut(to).copy_from_slice(memory.slice(from)));
    assert_eq!(copied, refused);
    own.synchronize().unwrap();
    other.synchronize().unwrap();
}

#[test]
fn a_token_of_another_operation_ends_the_stream() {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s").unwrap();
    let buffer = device.buffer::<u8>(4, &stream).unwrap();
    let mut declared = stream.operation("declared");
    let token = declared.read(&buffer);
    declared.run(|_| {}).unwrap();
    stream.operation("other").run(move |memory| drop(memory.slice(token).to_vec())).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("declared for another operation"), "{error}");
}
