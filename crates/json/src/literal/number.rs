//! Numbers of Python, turned into numbers of JSON digit by digit.

/// A number that is being read.
#[derive(Clone, Debug)]
pub(super) struct Number {
    part: Part,
    /// What digits to the base 16, 8 or 2 come to: nine decimal digits a limb, the lowest first.
    limbs: Vec<u32>,
    digits: usize,
    /// An underscore, which only a digit may follow.
    score: bool,
}

/// How many digits to another base are read. What they come to is worked out anew with each of them.
const MAX_DIGITS: usize = 4096;

const NO_NUMBER: &str = "a number is not valid JSON";

/// What was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Start,
    Sign,
    /// A zero that begins the number and was not written.
    Zero,
    /// The letter after it, then digits.
    Base(u32),
    Digits(u32),
    Whole,
    /// A point that was not written, with digits before it or none.
    Point,
    LonePoint,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
}

impl Number {
    pub fn new() -> Number {
        Number { part: Part::Start, limbs: Vec::new(), digits: 0, score: false }
    }

    /// Takes a byte; false if the number ended before it.
    ///
    /// # Errors
    /// It is no number, or none of JSON's.
    pub fn take(&mut self, byte: u8, out: &mut String) -> Result<bool, &'static str> {
        let c = char::from(byte);
        let base = if let Part::Base(base) | Part::Digits(base) = self.part { base } else { 10 };
        if std::mem::replace(&mut self.score, byte == b'_') {
            if !c.is_digit(base) {
                return Err(NO_NUMBER);
            }
        } else if byte == b'_' {
            let between = [Part::Zero, Part::Base(base), Part::Digits(base), Part::Whole, Part::Fraction, Part::Power];
            return if between.contains(&self.part) { Ok(true) } else { Err(NO_NUMBER) };
        }
        self.part = match (self.part, byte) {
            (Part::Start, b'+') => Part::Sign,
            (Part::Start, b'-') => {
                out.push('-');
                Part::Sign
            }
            (Part::Start | Part::Sign, b'0') => Part::Zero,
            (Part::Start | Part::Sign, b'1'..=b'9') => {
                out.push(c);
                Part::Whole
            }
            (Part::Start | Part::Sign, b'.') => {
                out.push('0');
                Part::LonePoint
            }
            (Part::Zero, b'0') => Part::Zero,
            (Part::Zero, b'x' | b'X') => Part::Base(16),
            (Part::Zero, b'o' | b'O') => Part::Base(8),
            (Part::Zero, b'b' | b'B') => Part::Base(2),
            (Part::Zero, b'.') => {
                out.push('0');
                Part::Point
            }
            (Part::Zero, b'e' | b'E') => {
                out.push('0');
                out.push(c);
                Part::Exponent
            }
            (Part::Base(_) | Part::Digits(_), _) if c.is_digit(base) => {
                self.add(base, c.to_digit(base).unwrap_or_default())?;
                Part::Digits(base)
            }
            (Part::Whole, b'.') => Part::Point,
            (Part::Point | Part::LonePoint, b'0'..=b'9') => {
                out.push('.');
                out.push(c);
                Part::Fraction
            }
            (part @ (Part::Whole | Part::Point | Part::Fraction), b'e' | b'E') => {
                if part == Part::Point {
                    out.push_str(".0");
                }
                out.push(c);
                Part::Exponent
            }
            (Part::Exponent, b'+' | b'-') => {
                out.push(c);
                Part::ExponentSign
            }
            (Part::Exponent | Part::ExponentSign | Part::Power, b'0'..=b'9') => {
                out.push(c);
                Part::Power
            }
            (part @ (Part::Whole | Part::Fraction), b'0'..=b'9') => {
                out.push(c);
                part
            }
            _ => return self.end(byte, out),
        };
        Ok(true)
    }

    /// The number ended before `byte`.
    fn end(&mut self, byte: u8, out: &mut String) -> Result<bool, &'static str> {
        if byte.is_ascii_alphanumeric() || byte == b'.' || !byte.is_ascii() {
            return Err(NO_NUMBER);
        }
        match self.part {
            Part::Zero => out.push('0'),
            Part::Point => out.push_str(".0"),
            Part::Digits(_) => {
                let mut limbs = self.limbs.iter().rev();
                out.push_str(&limbs.next().map_or_else(|| "0".to_owned(), u32::to_string));
                limbs.for_each(|limb| out.push_str(&format!("{limb:09}")));
            }
            Part::Whole | Part::Fraction | Part::Power => {}
            _ => return Err(NO_NUMBER),
        }
        Ok(false)
    }

    /// One more digit of a whole number, however large.
    fn add(&mut self, base: u32, digit: u32) -> Result<(), &'static str> {
        const LIMB: u64 = 1_000_000_000;
        self.digits += 1;
        if self.digits > MAX_DIGITS {
            return Err("a number has too many digits");
        }
        let mut carry = u64::from(digit);
        for limb in &mut self.limbs {
            let sum = u64::from(*limb) * u64::from(base) + carry;
            *limb = (sum % LIMB) as u32;
            carry = sum / LIMB;
        }
        if carry > 0 {
            self.limbs.push(carry as u32);
        }
        Ok(())
    }
}
