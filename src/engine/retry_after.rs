//! `Retry-After` (RFC 9110 §10.2.3) and the HTTP-date (§5.6.7): how long a server asks us to wait.
//!
//! A value is read whole or not at all, and never by the browser: its date parser takes `-3` for a day in 2001. What
//! does not match is ignored, and the wait is then the policy's own.

/// A `Retry-After` value that was understood (RFC 9110 §10.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// `delay-seconds`: milliseconds to wait from the arrival of the response. `u64::MAX` where the value is beyond it.
    Delay(u64),
    /// `HTTP-date`: the moment to wait for, in milliseconds since the Unix epoch; 0 where it lies before.
    Date(u64),
}

/// The least time to wait before the next attempt, as a server asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Milliseconds from the arrival of the response; up to `u64::MAX`, so add to it with saturation.
    pub ms: u64,
    /// The date was compared with the local clock, for want of a readable `Date`: `ms` may be wrong by the whole error
    /// of that clock.
    pub by_local_clock: bool,
}

/// Reads a `Retry-After` value (RFC 9110 §10.2.3).
///
/// The whole value must match, leading and trailing spaces and tabs aside. Seconds are digits, of any length. A decimal
/// fraction (`299.997`), which the RFC does not know and servers send, is rounded up to the next whole second: never
/// shorter than asked. `.5`, `1.`, signs, lists, exponents, hexadecimal and ISO 8601 dates are malformed.
///
/// `now` (wall clock, milliseconds since the epoch) serves only to place a two-digit year in its century.
///
/// # Errors
/// `None` where the value is malformed: to be treated as if the header were absent.
pub fn parse(value: &str, now: u64) -> Option<RetryAfter> {
    let value = trim_ows(value.as_bytes());
    match delay(value) {
        Some(ms) => Some(RetryAfter::Delay(ms)),
        None => http_date(value, seconds(now)).map(|at| RetryAfter::Date(millis(at))),
    }
}

/// Reads an HTTP-date in any of the three forms that a recipient must accept (RFC 9110 §5.6.7), as milliseconds since
/// the Unix epoch; 0 where it lies before. Leading and trailing spaces and tabs do not count.
///
/// - Case matters, the zone is always GMT, the day must exist (no 31 February; 29 February in leap years alone).
/// - The day's name must be one, but need not be that date's: a recipient is "encouraged to be robust", and the date
///   says all there is to know.
/// - `23:59:60`, a leap second, is the first second of the next day. No other minute has a second 60.
/// - A two-digit year lies at most 50 years after `now` (wall clock, milliseconds since the epoch); else it is the most
///   recent one in the past that ends so.
///
/// # Errors
/// `None` where the value is anything else.
pub fn parse_http_date(value: &str, now: u64) -> Option<u64> {
    http_date(trim_ows(value.as_bytes()), seconds(now)).map(millis)
}

/// How long a response asks to wait: from its `Retry-After`, and its `Date` where that can be read.
///
/// A date is compared with the server's own clock, the `Date` of the same response; the local clock (`now`, wall,
/// milliseconds since the epoch) stands in where that is missing, malformed, or hidden by CORS. A date in the past is a
/// floor of 0.
///
/// # Errors
/// `None` without a well-formed `Retry-After`.
pub fn floor(retry_after: Option<&str>, date: Option<&str>, now: u64) -> Option<Floor> {
    let retry_after = trim_ows(retry_after?.as_bytes());
    if let Some(ms) = delay(retry_after) {
        return Some(Floor {
            ms,
            by_local_clock: false,
        });
    }
    let servers = date.and_then(|date| http_date(trim_ows(date.as_bytes()), seconds(now)));
    match servers {
        // The server's clock also places a two-digit year: ours may be decades off.
        Some(servers) => http_date(retry_after, servers).map(|at| Floor {
            ms: millis(at.saturating_sub(servers)),
            by_local_clock: false,
        }),
        None => http_date(retry_after, seconds(now)).map(|at| Floor {
            ms: millis(at).saturating_sub(now),
            by_local_clock: true,
        }),
    }
}

/// Whole seconds of a moment or span in milliseconds.
fn seconds(ms: u64) -> i64 {
    (ms / 1000) as i64
}

/// Milliseconds of a moment or span in seconds; 0 for a negative one.
fn millis(seconds: i64) -> u64 {
    (seconds.max(0) as u64).saturating_mul(1000)
}

/// Takes OWS off both ends (RFC 9110 §5.6.3).
fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// `1*DIGIT [ "." 1*DIGIT ]` seconds, rounded up to whole ones, in milliseconds.
fn delay(value: &[u8]) -> Option<u64> {
    let mut seconds = 0u64;
    let mut rest = value;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        seconds = seconds
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'));
        rest = tail;
    }
    if rest.len() == value.len() {
        return None;
    }
    match rest {
        [] => {}
        [b'.', fraction @ ..]
            if !fraction.is_empty() && fraction.iter().all(u8::is_ascii_digit) =>
        {
            let rounded_up = fraction.iter().any(|digit| *digit != b'0');
            seconds = seconds.saturating_add(u64::from(rounded_up));
        }
        _ => return None,
    }
    Some(seconds.saturating_mul(1000))
}

/// The days' names: what every form begins with, and what the RFC 850 form adds to it.
const DAYS: [(&[u8], &[u8]); 7] = [
    (b"Mon", b"day"),
    (b"Tue", b"sday"),
    (b"Wed", b"nesday"),
    (b"Thu", b"rsday"),
    (b"Fri", b"day"),
    (b"Sat", b"urday"),
    (b"Sun", b"day"),
];

/// The months' names, and how many days each has outside leap years.
const MONTHS: [(&[u8], i64); 12] = [
    (b"Jan", 31),
    (b"Feb", 28),
    (b"Mar", 31),
    (b"Apr", 30),
    (b"May", 31),
    (b"Jun", 30),
    (b"Jul", 31),
    (b"Aug", 31),
    (b"Sep", 30),
    (b"Oct", 31),
    (b"Nov", 30),
    (b"Dec", 31),
];

/// An HTTP-date in seconds since the epoch, negative before it. `now`, in the same unit, places a two-digit year.
fn http_date(value: &[u8], now: i64) -> Option<i64> {
    let mut text = Text(value);
    let (_, rest_of_day) = DAYS.iter().find(|(day, _)| text.skip(day).is_some())?;
    let (year, month, longest, day, time);
    if text.skip(b", ").is_some() {
        // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
        day = text.number(2)?;
        text.skip(b" ")?;
        (month, longest) = text.month()?;
        text.skip(b" ")?;
        year = text.number(4)?;
        text.skip(b" ")?;
        time = text.time()?;
        text.skip(b" GMT")?;
    } else if text.skip(b" ").is_some() {
        // asctime: Sun Nov  6 08:49:37 1994
        (month, longest) = text.month()?;
        text.skip(b" ")?;
        day = match text.skip(b" ") {
            Some(()) => text.number(1)?,
            None => text.number(2)?,
        };
        text.skip(b" ")?;
        time = text.time()?;
        text.skip(b" ")?;
        year = text.number(4)?;
    } else {
        // RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
        text.skip(rest_of_day)?;
        text.skip(b", ")?;
        day = text.number(2)?;
        text.skip(b"-")?;
        (month, longest) = text.month()?;
        text.skip(b"-")?;
        let ending = text.number(2)?;
        text.skip(b" ")?;
        time = text.time()?;
        text.skip(b" GMT")?;

        // To within a year, which the margin below covers.
        let this_year = 1970 + now.div_euclid(31_556_952);
        let latest = this_year + 52;
        let mut candidate = latest - (latest - ending).rem_euclid(100);
        while days(candidate - 50, month, day) * 86_400 + time > now {
            candidate -= 100;
        }
        year = candidate;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = longest + i64::from(month == 2 && leap);
    if !text.0.is_empty() || day < 1 || day > longest {
        return None;
    }
    Some(days(year, month, day) * 86_400 + time)
}

/// Days from the epoch to a date of the proleptic Gregorian calendar. The year is counted from March, so that the leap
/// day is its last, and in eras of 400 years, which are all of one length.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let in_era = year.rem_euclid(400);
    let in_year = (153 * month + 2) / 5 + day - 1;
    year.div_euclid(400) * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468
}

/// What is left to read.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// Reads exactly these bytes, or nothing.
    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Reads a number of exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let mut number = 0;
        for _ in 0..digits {
            let [digit @ b'0'..=b'9', rest @ ..] = self.0 else {
                return None;
            };
            number = number * 10 + i64::from(digit - b'0');
            self.0 = rest;
        }
        Some(number)
    }

    /// Reads a month's name: its number from 1, and its days outside leap years.
    fn month(&mut self) -> Option<(i64, i64)> {
        let mut number = 0;
        for (name, days) in MONTHS {
            number += 1;
            if self.skip(name).is_some() {
                return Some((number, days));
            }
        }
        None
    }

    /// Reads `hour ":" minute ":" second`: the second of the day.
    fn time(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.skip(b":")?;
        let minute = self.number(2)?;
        self.skip(b":")?;
        let second = self.number(2)?;
        let real = hour < 24 && minute < 60 && second < 60;
        let leap_second = hour == 23 && minute == 59 && second == 60;
        (real || leap_second).then_some(hour * 3600 + minute * 60 + second)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::RetryAfter::{Date, Delay};
    use super::*;

    /// 2026-02-14T12:00:00Z, a Saturday.
    const NOW: u64 = 1_771_070_400_000;
    /// Sun, 06 Nov 1994 08:49:37 GMT, the RFC's example.
    const EXAMPLE: u64 = 784_111_777_000;

    #[test]
    fn delays() {
        for (value, expected) in [
            ("0", 0),
            ("120", 120_000),
            ("007", 7_000),
            (" \t120\t ", 120_000),
            ("2200000", 2_200_000_000),
            ("9999999999", 9_999_999_999_000),
            ("18446744073709551615", u64::MAX),
            ("18446744073709551616", u64::MAX),
            (&"9".repeat(5000), u64::MAX),
            (&["0".repeat(5000).as_str(), "5"].concat(), 5_000),
            // Fractions: up to the next whole second.
            ("1.5", 2_000),
            ("0.314", 1_000),
            ("299.997", 300_000),
            ("1.0", 1_000),
            ("3.000", 3_000),
            ("0.0", 0),
            ("0.00000000000000000000000000000000000000001", 1_000),
            ("18446744073709551615.1", u64::MAX),
        ] {
            assert_eq!(parse(value, NOW), Some(Delay(expected)), "{value:?}");
        }
    }

    #[test]
    fn malformed_values_are_ignored() {
        for value in [
            "",
            " ",
            "-3",
            "+3",
            "-0",
            "- 3",
            "120junk",
            "junk",
            "120 s",
            "120s",
            "5, 10",
            "5,10",
            "5,",
            "10;q=1",
            "5 10",
            ".5",
            "1.",
            ".",
            "1..5",
            "1.5.5",
            "1.-5",
            "1.5e3",
            "1,5",
            "1e3",
            "1E3",
            "0x10",
            "0b1",
            "1_000",
            "Infinity",
            "NaN",
            "null",
            "undefined",
            "\"5\"",
            "5\n",
            "\r\n5",
            "5\u{a0}",
            "\u{feff}5",
            "５",
            "٣",
            "5\0",
            "PT5S",
        ] {
            assert_eq!(parse(value, NOW), None, "{value:?}");
            assert_eq!(floor(Some(value), None, NOW), None, "{value:?}");
        }
    }

    #[test]
    fn three_forms_of_a_date() {
        for value in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "\t Sun, 06 Nov 1994 08:49:37 GMT  ",
            // A day's name that is not this date's.
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Wednesday, 06-Nov-94 08:49:37 GMT",
            "Thu Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse_http_date(value, NOW), Some(EXAMPLE), "{value:?}");
            assert_eq!(parse(value, NOW), Some(Date(EXAMPLE)), "{value:?}");
        }
    }

    #[test]
    fn dates_at_the_edges() {
        for (value, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 01 Jan 1970 00:00:01 GMT", 1_000),
            ("Wed, 31 Dec 1969 23:59:59 GMT", 0),
            ("Sat, 01 Jan 0000 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800_000),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400_000),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648_000),
            ("Thu, 31 Dec 2099 23:59:59 GMT", 4_102_444_799_000),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799_000),
            // A leap second: the next day's first.
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800_000),
            ("Sun, 01 Jan 2017 00:00:00 GMT", 1_483_228_800_000),
        ] {
            assert_eq!(parse_http_date(value, NOW), Some(expected), "{value:?}");
        }
    }

    #[test]
    fn what_is_not_a_date() {
        for value in [
            // Case.
            "sun, 06 nov 1994 08:49:37 gmt",
            "SUN, 06 NOV 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 gmt",
            "sunday, 06-Nov-94 08:49:37 GMT",
            "sun Nov  6 08:49:37 1994",
            // One digit where there are two, and other widths.
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun,  6 Nov 1994 08:49:37 GMT",
            "Sunday, 6-Nov-94 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov   6 08:49:37 1994",
            "Sun Nov  06 08:49:37 1994",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 01994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37.5 GMT",
            // The forms mixed.
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday Nov  6 08:49:37 1994",
            // Zones.
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 ",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 Z",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37 GMT+1",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sunday, 06-Nov-94 08:49:37",
            "Sun Nov  6 08:49:37 1994 GMT",
            // Days' and months' names.
            "06 Nov 1994 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Tueday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Now 1994 08:49:37 GMT",
            "Sun, 06 November 1994 08:49:37 GMT",
            "Sun, 06 11 1994 08:49:37 GMT",
            // Days that do not exist.
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 32 Oct 1994 08:49:37 GMT",
            "Sun, 31 Feb 2024 08:49:37 GMT",
            "Sun, 30 Feb 2024 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 29 Feb 2100 08:49:37 GMT",
            "Sunday, 29-Feb-23 08:49:37 GMT",
            "Sun Feb 31 08:49:37 2024",
            "Sun Nov  0 08:49:37 1994",
            // Times that do not exist.
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 23:59:61 GMT",
            // Signs in numbers.
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov -994 08:49:37 GMT",
            // Cut short, run on, doubled.
            "Sun",
            "Sun,",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49:37 GM",
            "Sun, 06 Nov 1994 08:49:37 GMT junk",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun,\t06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT\n",
            // Other notations.
            "1994-11-06T08:49:37Z",
            "1994-11-06",
            "1994-11-06 08:49:37",
            "11/06/1994",
            "Nov 6, 1994",
            "Sun, 06 Nov １９９４ 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(value, NOW), None, "{value:?}");
            assert_eq!(parse(value, NOW), None, "{value:?}");
        }
    }

    #[test]
    fn two_digit_years() {
        /// 2070-07-01T00:00:00Z
        const LATER: u64 = 3_171_398_400_000;
        for (now, value, four_digits) in [
            (NOW, "Friday, 14-Feb-25 12:00:00 GMT", "2025"),
            (NOW, "Friday, 14-Feb-26 12:00:00 GMT", "2026"),
            (NOW, "Friday, 14-Feb-27 12:00:00 GMT", "2027"),
            (NOW, "Friday, 14-Feb-75 12:00:00 GMT", "2075"),
            // Fifty years to the second are not more than fifty.
            (NOW, "Friday, 14-Feb-76 12:00:00 GMT", "2076"),
            (NOW + 999, "Friday, 14-Feb-76 12:00:00 GMT", "2076"),
            (NOW, "Friday, 14-Feb-76 12:00:01 GMT", "1976"),
            (NOW - 1, "Friday, 14-Feb-76 12:00:00 GMT", "1976"),
            (NOW, "Friday, 31-Dec-76 00:00:00 GMT", "1976"),
            (NOW, "Friday, 14-Feb-77 12:00:00 GMT", "1977"),
            (NOW, "Friday, 14-Feb-99 12:00:00 GMT", "1999"),
            (NOW, "Friday, 14-Feb-00 12:00:00 GMT", "2000"),
            (LATER, "Friday, 14-Feb-10 12:00:00 GMT", "2110"),
            (LATER, "Friday, 14-Feb-69 12:00:00 GMT", "2069"),
            (LATER, "Friday, 14-Feb-21 12:00:00 GMT", "2021"),
            (0, "Friday, 14-Feb-19 12:00:00 GMT", "2019"),
            (0, "Friday, 14-Feb-20 12:00:00 GMT", "1920"),
        ] {
            let (day, rest) = value.split_at("Friday, 14-Feb-".len());
            let long = [
                "Fri, ",
                &day[8..].replace('-', " "),
                four_digits,
                &rest[2..],
            ]
            .concat();
            let expected = parse_http_date(&long, now).unwrap();
            assert_eq!(
                parse_http_date(value, now),
                Some(expected),
                "{value} at {now}: {long}"
            );
        }
        // The most recent past year with that ending has no such day.
        assert_eq!(
            parse_http_date("Monday, 29-Feb-00 00:00:00 GMT", 4_133_980_800_000),
            None
        );
    }

    fn by_server(ms: u64) -> Option<Floor> {
        Some(Floor {
            ms,
            by_local_clock: false,
        })
    }

    fn by_local_clock(ms: u64) -> Option<Floor> {
        Some(Floor {
            ms,
            by_local_clock: true,
        })
    }

    #[test]
    fn a_delay_needs_no_clock() {
        for now in [0, NOW, u64::MAX] {
            for date in [None, Some("junk"), Some("Sun, 06 Nov 1994 08:49:37 GMT")] {
                assert_eq!(floor(Some("120"), date, now), by_server(120_000));
                assert_eq!(floor(None, date, now), None);
                assert_eq!(floor(Some("-3"), date, now), None);
            }
        }
    }

    #[test]
    fn a_date_is_compared_with_the_servers_clock() {
        let hour = 3_600_000;
        for now in [NOW, NOW + hour, NOW - hour, 0, u64::MAX] {
            for (retry_after, date, expected) in [
                (
                    "Sat, 14 Feb 2026 12:02:00 GMT",
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    120_000,
                ),
                (
                    "Sat Feb 14 12:02:00 2026",
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    120_000,
                ),
                // The server's year places the two digits, whatever our clock says.
                (
                    "Saturday, 14-Feb-26 12:02:00 GMT",
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    120_000,
                ),
                (
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    0,
                ),
                (
                    "Sat, 14 Feb 2026 11:00:00 GMT",
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    0,
                ),
                (
                    "Thu, 01 Jan 1970 00:00:00 GMT",
                    "Sat, 14 Feb 2026 12:00:00 GMT",
                    0,
                ),
                // A server whose own clock is wrong is right about the difference.
                (
                    "Thu, 01 Jan 1970 00:00:30 GMT",
                    "Thu, 01 Jan 1970 00:00:00 GMT",
                    30_000,
                ),
                (
                    "Mon, 01 Jan 1900 00:00:30 GMT",
                    "Mon, 01 Jan 1900 00:00:00 GMT",
                    30_000,
                ),
            ] {
                assert_eq!(
                    floor(Some(retry_after), Some(date), now),
                    by_server(expected),
                    "{retry_after} at {date}, {now}"
                );
            }
        }
        // Both with two digits: the century cancels out.
        for now in [NOW, 0, NOW * 2] {
            assert_eq!(
                floor(
                    Some("Saturday, 14-Feb-26 12:02:00 GMT"),
                    Some("Saturday, 14-Feb-26 12:00:00 GMT"),
                    now
                ),
                by_server(120_000)
            );
        }
    }

    #[test]
    fn the_local_clock_stands_in_for_a_hidden_date() {
        for date in [
            None,
            Some(""),
            Some("junk"),
            Some("2026-02-14T12:00:00Z"),
            Some("120"),
        ] {
            for (retry_after, now, expected) in [
                ("Sat, 14 Feb 2026 12:02:00 GMT", NOW, 120_000),
                ("Sat, 14 Feb 2026 12:02:00 GMT", NOW + 1, 119_999),
                ("Saturday, 14-Feb-26 12:02:00 GMT", NOW, 120_000),
                ("Sat Feb 14 11:00:00 2026", NOW, 0),
                ("Sat, 14 Feb 2026 12:02:00 GMT", u64::MAX, 0),
                ("Sat, 14 Feb 2026 12:02:00 GMT", 0, NOW + 120_000),
                ("Thu, 31 Dec 2099 23:59:59 GMT", NOW, 2_331_374_399_000),
            ] {
                assert_eq!(
                    floor(Some(retry_after), date, now),
                    by_local_clock(expected),
                    "{retry_after} at {now}, {date:?}"
                );
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    mod properties {
        use super::*;
        use proptest::prelude::*;

        const FULL_DAYS: [&str; 7] = [
            "Thursday",
            "Friday",
            "Saturday",
            "Sunday",
            "Monday",
            "Tuesday",
            "Wednesday",
        ];
        const SHORT_MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];

        fn is_leap(year: u64) -> bool {
            (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
        }

        /// The three forms of a moment, by counting: nothing shared with the parser.
        fn forms(seconds: u64) -> [String; 3] {
            let (mut left, time) = (seconds / 86_400, seconds % 86_400);
            let day_name = FULL_DAYS[(left % 7) as usize];
            let mut year = 1970;
            while left >= 365 + u64::from(is_leap(year)) {
                left -= 365 + u64::from(is_leap(year));
                year += 1;
            }
            let february = 28 + u64::from(is_leap(year));
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let mut month = 0;
            while left >= lengths[month] {
                left -= lengths[month];
                month += 1;
            }
            let (month, day, short) = (SHORT_MONTHS[month], left + 1, &day_name[..3]);
            let time = format!("{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60);
            [
                format!("{short}, {day:02} {month} {year:04} {time} GMT"),
                format!("{day_name}, {day:02}-{month}-{:02} {time} GMT", year % 100),
                format!("{short} {month} {day:2} {time} {year:04}"),
            ]
        }

        proptest! {
            #[test]
            fn dates_go_round_through_all_three_forms(
                seconds in 0u64..253_402_300_800,
                // Whatever the clock says within 49 years either way, two digits are enough.
                skew in -1_546_000_000i64..1_546_000_000,
            ) {
                let now = seconds.saturating_add_signed(skew) * 1000;
                let [imf, rfc850, asctime] = forms(seconds);
                prop_assert_eq!(parse_http_date(&imf, 0), Some(seconds * 1000), "{}", imf);
                prop_assert_eq!(parse_http_date(&asctime, 0), Some(seconds * 1000), "{}", asctime);
                prop_assert_eq!(parse_http_date(&rfc850, now), Some(seconds * 1000), "{}", rfc850);
            }

            #[test]
            fn a_two_digit_year_is_the_latest_within_fifty_years(
                seconds in 0u64..253_402_300_800,
                now in 0u64..253_402_300_800,
            ) {
                let [_, rfc850, _] = forms(seconds);
                let read = http_date(rfc850.as_bytes(), now as i64);
                // None: 29 February in a year that has none.
                if let Some(read) = read {
                    let (year, now) = (31_556_952, now as i64);
                    prop_assert!(read - now <= 50 * year + 2 * 86_400, "{}", rfc850);
                    prop_assert!(now - read <= 50 * year + 2 * 86_400, "{}", rfc850);
                } else {
                    prop_assert!(rfc850.contains("29-Feb-00"), "{}", rfc850);
                }
            }

            #[test]
            fn anything_may_be_thrown_at_the_parsers(
                value in any::<String>(),
                date in any::<String>(),
                now: u64,
            ) {
                parse(&value, now);
                parse_http_date(&value, now);
                floor(Some(&value), Some(&date), now);
            }

            #[test]
            fn a_date_with_one_byte_changed_or_cut(
                seconds in 0u64..253_402_300_800,
                form in 0usize..3,
                at: prop::sample::Index,
                byte in 0u8..128,
                now: u64,
            ) {
                let mut text = forms(seconds)[form].clone().into_bytes();
                let at = at.index(text.len());
                let cut = String::from_utf8(text[..at].to_vec()).unwrap();
                prop_assert_eq!(parse(&cut, now), None);
                text[at] = byte;
                let changed = String::from_utf8(text).unwrap();
                if let Some(Delay(_)) = parse(&changed, now) {
                    prop_assert!(false, "{} is a delay", changed);
                }
            }

            #[test]
            fn a_delay_is_never_shorter_than_asked(
                whole in 0u64..1_000_000_000_000_000,
                fraction in "[0-9]{1,20}",
            ) {
                let more = u64::from(fraction.contains(|digit| digit != '0'));
                let text = format!("{whole}.{fraction}");
                prop_assert_eq!(parse(&text, NOW), Some(Delay((whole + more) * 1000)));
                prop_assert_eq!(parse(&whole.to_string(), NOW), Some(Delay(whole * 1000)));
            }
        }
    }
}
