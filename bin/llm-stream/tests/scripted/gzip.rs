//! Bodies in gzip's form, for the tests of this command and of tool-exec.

/// A body in gzip's form that is `start`, so often `byte`, and `end`: one bit for some twenty bytes
/// (RFC 1951, fixed codes).
pub fn gzip_run(start: &str, byte: u8, times: usize, end: &str) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut bits, mut count) = (0_u64, 0);
    // `value` with its first bit lowest, or, for a code, reversed.
    let mut put = |value: u64, length: u32, is_code: bool| {
        let value = if is_code {
            value.reverse_bits() >> (64 - length)
        } else {
            value
        };
        bits |= value << count;
        count += length;
        while count >= 8 {
            out.push(bits as u8);
            (bits, count) = (bits >> 8, count - 8);
        }
    };
    // One block, the last one, with fixed codes.
    put(0b011, 3, false);
    let literal = |byte: u8| {
        if byte < 144 {
            (0x30 + u64::from(byte), 8)
        } else {
            (0x190 + u64::from(byte) - 144, 9)
        }
    };
    let rest = (times - 1) % 258;
    for byte in start.bytes().chain(std::iter::repeat_n(byte, 1 + rest)) {
        let (code, length) = literal(byte);
        put(code, length, true);
    }
    for _ in 0..(times - 1) / 258 {
        put(0b1100_0101, 8, true); // 258 bytes
        put(0, 5, true); // copied from one byte back
    }
    for byte in end.bytes() {
        let (code, length) = literal(byte);
        put(code, length, true);
    }
    put(0, 7, true); // the end of the block
    put(0, 7, false);
    let table: Vec<u32> = (0..256)
        .map(|n| {
            (0..8).fold(n, |crc: u32, _| {
                if crc & 1 == 1 {
                    crc >> 1 ^ 0xedb8_8320
                } else {
                    crc >> 1
                }
            })
        })
        .collect();
    let body = start
        .bytes()
        .chain(std::iter::repeat_n(byte, times))
        .chain(end.bytes());
    let crc = !body.fold(!0_u32, |crc, byte| {
        crc >> 8 ^ table[(crc as u8 ^ byte) as usize]
    });
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(
        &u32::try_from(start.len() + times + end.len())
            .unwrap()
            .to_le_bytes(),
    );
    out
}

/// A body in gzip's form, stored without compression (RFC 1952, RFC 1951).
pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let length = u16::try_from(body.len()).unwrap();
    out.push(1);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(body);
    let mut crc = !0_u32;
    for byte in body {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    out.extend_from_slice(&(!crc).to_le_bytes());
    out.extend_from_slice(&u32::from(length).to_le_bytes());
    out
}
