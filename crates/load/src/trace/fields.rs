//! Fields of a line, and the numbers in them.
//!
//! Invariant: a number is read exactly or not at all; what does not fit 64 bits is no number.

use raidlab_types::number::{u32_from, u64_from};
use raidlab_types::RequestKind;

/// The fields of a line that commas part, white space around them taken off.
pub(crate) fn by_comma(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// The words of a line that white space parts.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The first `N` fields, if there are as many.
#[inline]
pub(crate) fn first<'a, const N: usize>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<[&'a [u8]; N]> {
    let mut found = [&[][..]; N];
    for field in &mut found {
        *field = fields.next()?;
    }
    Some(found)
}

/// All fields, if there are exactly `N`.
#[inline]
pub(crate) fn exactly<'a, const N: usize>(mut fields: impl Iterator<Item = &'a [u8]>) -> Option<[&'a [u8]; N]> {
    first(&mut fields).filter(|_| fields.next().is_none())
}

/// Read or write, by the words that stand for either.
#[inline]
pub(crate) fn kind(field: &[u8], read: &[&[u8]], write: &[&[u8]]) -> Option<RequestKind> {
    match field {
        _ if read.contains(&field) => Some(RequestKind::Read),
        _ if write.contains(&field) => Some(RequestKind::Write),
        _ => None,
    }
}

/// A whole number.
#[inline]
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    // Nineteen digits always fit.
    if field.len() <= 19 {
        let mut value = 0;
        for &byte in field {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    std::str::from_utf8(field).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

/// A whole number times a unit.
#[inline]
pub(crate) fn times(field: &[u8], unit: u64) -> Option<u64> {
    number(field)?.checked_mul(unit)
}

/// A number that may have a fraction, times a unit, to the nearest whole.
pub(crate) fn decimal(field: &[u8], unit: u64) -> Option<u64> {
    /// More digits than this say nothing about a nanosecond.
    const MOST_DIGITS: usize = 18;
    let point = field.iter().position(|&byte| byte == b'.');
    let Some(point) = point else { return times(field, unit) };
    let (whole, fraction) = (&field[..point], &field[point + 1..]);
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { times(whole, unit)? };
    let digits = fraction.len().min(MOST_DIGITS);
    let scale = 10u64.pow(u32_from(digits));
    let part =
        (u128::from(number(&fraction[..digits])?) * u128::from(unit) + u128::from(scale / 2)) / u128::from(scale);
    whole.checked_add(u64_from(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_none() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"-1", b"+1", b"+1844674407370955161", b"1e3", b" 1", b"18446744073709551616", b"1.5"] {
            assert_eq!(number(bad), None, "{}", String::from_utf8_lossy(bad));
        }
        assert_eq!(times(b"18446744073709551615", 2), None);
    }

    #[test]
    fn decimals_are_rounded_once_to_the_nearest_whole() {
        const S: u64 = 1_000_000_000;
        assert_eq!(decimal(b"0.026214", S), Some(26_214_000));
        assert_eq!(decimal(b"697", S), Some(697 * S));
        assert_eq!(decimal(b".5", S), Some(S / 2));
        assert_eq!(decimal(b"1.0000000004999", S), Some(S));
        assert_eq!(decimal(b"1.0000000005", S), Some(S + 1));
        assert_eq!(decimal(b"0.9999999999999999999999", S), Some(S));
        for bad in [&b"1."[..], b"-0.5", b"1.2.3", b"1.5e3", b"."] {
            assert_eq!(decimal(bad, S), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
