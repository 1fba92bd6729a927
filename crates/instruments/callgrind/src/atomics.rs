//! Which instructions of an object are atomic read-modify-writes.

use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Architecture, Object as _, ObjectSegment as _};

/// Objects that are larger are not read, in bytes.
const FILE_MAX: u64 = 1 << 30;

/// What an instruction does to memory that other processors see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// No atomic read-modify-write.
    Plain,
    /// A locked instruction, or an exchange with memory, which is locked without saying so (Intel
    /// SDM volume 3, §9.1.2.1).
    Atomic,
    /// A locked instruction that changes nothing, on the thread's own stack: a memory barrier.
    Fence,
}

/// The code of an object.
#[derive(Debug)]
pub(crate) struct Code {
    bytes: Vec<u8>,
    /// Loaded segments: address, offset in the file, size there.
    segments: Vec<(u64, usize, usize)>,
    /// Whether it is of the one architecture that can be told.
    x86_64: bool,
}

impl Code {
    /// Of a file; `None` for what is not an object that can be read, such as a file since deleted.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let small = std::fs::metadata(path).is_ok_and(|file| file.len() <= FILE_MAX);
        small.then(|| std::fs::read(path).ok()).flatten().and_then(Self::parse)
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let file = object::File::parse(bytes.as_slice()).ok()?;
        let x86_64 = file.architecture() == Architecture::X86_64;
        let segments = file
            .segments()
            .filter_map(|segment| {
                let (offset, size) = segment.file_range();
                Some((segment.address(), offset.try_into().ok()?, size.try_into().ok()?))
            })
            .collect();
        drop(file);
        Some(Self { bytes, segments, x86_64 })
    }

    /// Whether its instructions can be told apart.
    pub(crate) fn is_known(&self) -> bool {
        self.x86_64
    }

    /// The instruction at an address; `None` where there is no code.
    pub(crate) fn class(&self, address: u64) -> Option<Class> {
        let (start, offset, size) = self.segments.iter().copied().find(|&(start, _, size)| {
            address.checked_sub(start).is_some_and(|inside| inside < size as u64)
        })?;
        let inside = usize::try_from(address - start).ok()?;
        let segment = self.bytes.get(offset..offset.checked_add(size)?)?;
        let mut decoder =
            Decoder::with_ip(64, segment.get(inside..)?, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then(|| classify(&instruction))
    }
}

fn classify(instruction: &Instruction) -> Class {
    let memory = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    let exchange = instruction.mnemonic() == Mnemonic::Xchg && memory;
    if !instruction.has_lock_prefix() && !exchange {
        return Class::Plain;
    }
    let adds_nothing = matches!(instruction.mnemonic(), Mnemonic::Or | Mnemonic::Add)
        && instruction.try_immediate(1).is_ok_and(|value| value == 0);
    if adds_nothing && instruction.memory_base() == Register::RSP {
        return Class::Fence;
    }
    Class::Atomic
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(bytes: &[u8]) -> Option<Class> {
        let size = bytes.len();
        let code = Code { bytes: bytes.to_vec(), segments: vec![(0x1000, 0, size)], x86_64: true };
        code.class(0x1000)
    }

    #[test]
    fn atomic_instructions_are_told_from_others() {
        for (bytes, expected) in [
            (&[0xf0, 0x49, 0x83, 0x04, 0x24, 0x01][..], Class::Atomic), // lock addq $1,(%r12)
            (&[0xf0, 0x48, 0x0f, 0xc1, 0x07], Class::Atomic),           // lock xadd %rax,(%rdi)
            (&[0xf0, 0x0f, 0xb1, 0x0f], Class::Atomic),                 // lock cmpxchg %ecx,(%rdi)
            (&[0x4c, 0x87, 0x28], Class::Atomic),                       // xchg %r13,(%rax)
            (&[0x48, 0x87, 0xd8], Class::Plain),                        // xchg %rbx,%rax
            (&[0x90], Class::Plain), // nop, that is xchg %eax,%eax
            (&[0x0f, 0xb1, 0x0f], Class::Plain), // cmpxchg without lock
            (&[0x48, 0x89, 0xe8], Class::Plain), // mov %rbp,%rax
            (&[0xf0, 0x83, 0x0c, 0x24, 0x00], Class::Fence), // lock orl $0,(%rsp)
            (&[0xf0, 0x48, 0x83, 0x0c, 0x24, 0x00], Class::Fence), // lock orq $0,(%rsp)
            (&[0xf0, 0x83, 0x0c, 0x24, 0x01], Class::Atomic), // lock orl $1,(%rsp)
            (&[0x0f, 0xae, 0xf0], Class::Plain), // mfence
        ] {
            assert_eq!(class(bytes), Some(expected), "{bytes:02x?}");
        }
    }

    #[test]
    fn no_code_is_no_instruction() {
        assert_eq!(class(&[]), None);
        assert_eq!(class(&[0xf0]), None, "half an instruction");
        let code = Code { bytes: vec![0x90], segments: vec![(0x1000, 0, 64)], x86_64: true };
        assert_eq!(code.class(0x1000), None, "a segment beyond the file's end");
        assert_eq!(code.class(0xfff), None);
        assert!(Code::parse(b"\x7fELF".to_vec()).is_none());
        assert!(Code::read(Path::new("/nowhere")).is_none());
    }
}
