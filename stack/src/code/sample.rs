//! Archives for tests.

#![allow(clippy::unwrap_used)]

use std::io::Write;

/// The number of a processor in an ELF header.
pub(crate) mod machine {
    pub(crate) const X86_64: u16 = 0x3e;
    pub(crate) const ARM64: u16 = 0xb7;
    /// One that Lambda does not have.
    pub(crate) const RISC_V: u16 = 0xf3;
}

/// How a file is stored in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored = 0,
    Deflated = 8,
}

/// The beginning of a program for a processor.
pub(crate) fn program(machine: u16) -> Vec<u8> {
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(18, 0);
    program.extend(machine.to_le_bytes());
    program.extend([0; 100]);
    program
}

/// An archive whose first file is this one.
pub(crate) fn archive(name: &str, method: Method, content: &[u8]) -> Vec<u8> {
    let mut archive = b"PK\x03\x04\x14\0\0\0".to_vec();
    archive.extend((method as u16).to_le_bytes());
    archive.resize(26, 0);
    archive.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    archive.extend(0_u16.to_le_bytes());
    archive.extend(name.as_bytes());
    if method == Method::Deflated {
        let mut encoder = flate2::write::DeflateEncoder::new(archive, flate2::Compression::best());
        encoder.write_all(content).unwrap();
        return encoder.finish().unwrap();
    }
    archive.extend(content);
    archive
}

/// The archive of a function for a processor.
pub(crate) fn function(machine: u16) -> Vec<u8> {
    archive("bootstrap", Method::Stored, &program(machine))
}
