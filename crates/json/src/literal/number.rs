//! Converts Python numbers to JSON numbers, digit by digit
//! (<https://docs.python.org/3/reference/lexical_analysis.html#numeric-literals>).

/// A number that is being read.
#[derive(Clone, Debug)]
pub(super) struct Number {
    part: NumberPart,
    /// The value of digits in base 16, 8 or 2: nine decimal digits per limb, lowest limb first.
    limbs: Vec<u32>,
    digits: usize,
    /// Whether the last byte was an underscore, after which only a digit is allowed.
    score: bool,
}

/// The maximum number of digits in base 16, 8 or 2. Each digit multiplies all limbs, so the time is
/// quadratic.
const MAX_DIGITS: usize = 4096;

const NO_NUMBER: &str = "a number is not valid JSON";

/// The part of the number that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberPart {
    Start,
    Sign,
    /// A leading zero that is not written yet.
    Zero,
    /// The base letter after a zero, then the digits in that base.
    Base(u32),
    Digits(u32),
    Whole,
    /// A decimal point that is not written yet: after digits, and without digits before it.
    Point,
    LonePoint,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
}

impl Number {
    pub(super) fn new() -> Number {
        Number {
            part: NumberPart::Start,
            limbs: Vec::new(),
            digits: 0,
            score: false,
        }
    }

    /// Reads a byte. Returns false if the number ended before this byte.
    ///
    /// # Errors
    /// The text is not a number, or is a number that JSON cannot represent.
    pub(super) fn take(&mut self, byte: u8, out: &mut String) -> Result<bool, &'static str> {
        let c = char::from(byte);
        let base = if let NumberPart::Base(base) | NumberPart::Digits(base) = self.part {
            base
        } else {
            10
        };
        if std::mem::replace(&mut self.score, byte == b'_') {
            if !c.is_digit(base) {
                return Err(NO_NUMBER);
            }
        } else if byte == b'_' {
            let between = [
                NumberPart::Zero,
                NumberPart::Base(base),
                NumberPart::Digits(base),
                NumberPart::Whole,
                NumberPart::Fraction,
                NumberPart::Power,
            ];
            return if between.contains(&self.part) {
                Ok(true)
            } else {
                Err(NO_NUMBER)
            };
        }
        self.part = match (self.part, byte) {
            (NumberPart::Start, b'+') => NumberPart::Sign,
            (NumberPart::Start, b'-') => {
                out.push('-');
                NumberPart::Sign
            }
            (NumberPart::Start | NumberPart::Sign, b'0') => NumberPart::Zero,
            (NumberPart::Start | NumberPart::Sign, b'1'..=b'9') => {
                out.push(c);
                NumberPart::Whole
            }
            (NumberPart::Start | NumberPart::Sign, b'.') => {
                out.push('0');
                NumberPart::LonePoint
            }
            (NumberPart::Zero, b'0') => NumberPart::Zero,
            (NumberPart::Zero, b'x' | b'X') => NumberPart::Base(16),
            (NumberPart::Zero, b'o' | b'O') => NumberPart::Base(8),
            (NumberPart::Zero, b'b' | b'B') => NumberPart::Base(2),
            (NumberPart::Zero, b'.') => {
                out.push('0');
                NumberPart::Point
            }
            (NumberPart::Zero, b'e' | b'E') => {
                out.push('0');
                out.push(c);
                NumberPart::Exponent
            }
            (NumberPart::Base(_) | NumberPart::Digits(_), _) if c.is_digit(base) => {
                self.add(base, c.to_digit(base).unwrap_or_default())?;
                NumberPart::Digits(base)
            }
            (NumberPart::Whole, b'.') => NumberPart::Point,
            (NumberPart::Point | NumberPart::LonePoint, b'0'..=b'9') => {
                out.push('.');
                out.push(c);
                NumberPart::Fraction
            }
            (
                part @ (NumberPart::Whole | NumberPart::Point | NumberPart::Fraction),
                b'e' | b'E',
            ) => {
                if part == NumberPart::Point {
                    out.push_str(".0");
                }
                out.push(c);
                NumberPart::Exponent
            }
            (NumberPart::Exponent, b'+' | b'-') => {
                out.push(c);
                NumberPart::ExponentSign
            }
            (NumberPart::Exponent | NumberPart::ExponentSign | NumberPart::Power, b'0'..=b'9') => {
                out.push(c);
                NumberPart::Power
            }
            (part @ (NumberPart::Whole | NumberPart::Fraction), b'0'..=b'9') => {
                out.push(c);
                part
            }
            _ => return self.end(byte, out),
        };
        Ok(true)
    }

    /// Ends the number before `byte`.
    fn end(&mut self, byte: u8, out: &mut String) -> Result<bool, &'static str> {
        if byte.is_ascii_alphanumeric() || byte == b'.' || !byte.is_ascii() {
            return Err(NO_NUMBER);
        }
        match self.part {
            NumberPart::Zero => out.push('0'),
            NumberPart::Point => out.push_str(".0"),
            NumberPart::Digits(_) => {
                let mut limbs = self.limbs.iter().rev();
                out.push_str(&limbs.next().map_or_else(|| "0".to_owned(), u32::to_string));
                limbs.for_each(|limb| out.push_str(&format!("{limb:09}")));
            }
            NumberPart::Whole | NumberPart::Fraction | NumberPart::Power => {}
            _ => return Err(NO_NUMBER),
        }
        Ok(false)
    }

    /// Appends a digit to an integer of any size.
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
