//! Newtype ids. Each names one generation of a thing that CUDA may recycle.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index into a table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// One stream, from creation to destruction. Legacy default streams have an id too, one per device.
    StreamId(u32)
);
id!(
    /// One CUDA event, from creation to destruction. Recording it again keeps the id.
    EventId(u32)
);
id!(
    /// One captured graph, from the beginning of its capture to its destruction. 0 is a graph that was not seen being
    /// captured.
    GraphId(u32)
);
id!(
    /// One executable graph (`cudaGraphExec_t`), from its instantiation to its destruction.
    ExecutableId(u32)
);
id!(
    /// One allocation, from the moment it is handed out to its free. 0 is no block.
    BlockId(u32)
);
id!(
    /// A device ordinal as CUDA counts them.
    DeviceId(u32)
);
id!(
    /// A host thread, numbered in order of first appearance. 0 is the thread that started recording.
    ThreadId(u32)
);
id!(
    /// An interned call stack, innermost frame first. 0 is the empty stack.
    SiteId(u32)
);
id!(
    /// An interned source position in one function.
    FrameId(u32)
);
id!(
    /// An interned string. 0 is the empty string.
    StringId(u32)
);
id!(
    /// An interned strided shape. 0 is contiguous: the access covers all its bytes.
    ShapeId(u32)
);

/// An operation's label, such as `aten::mul` or `memcpy HtoD`: an interned string.
pub type LabelId = StringId;

/// The place of an event in the process's log: the value of the one counter when the call was made.
///
/// Numbers start at 1 and are shown as `#1207`. 0 means "before everything". Numbers may be missing: those
/// of failed calls, or those lost in a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpNumber(pub u64);

impl std::fmt::Display for OpNumber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "#{}", self.0)
    }
}
