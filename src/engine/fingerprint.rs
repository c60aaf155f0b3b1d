//! A short print of a request, to tell whether a key that is known comes back with the same bytes.
//!
//! An application that gives its own key and gives it again gets the submission that it made, unless the request is
//! another one: then `key-reused`. The print answers that question alone. It guards against mistakes, not against
//! people: it is not cryptographic, and whoever wants two requests of one print can make them.

use super::key_field::{Boundary, Delimiters};

/// The print of a request: 32 lower-case hexadecimal digits (128 bits). It is stored with the intent, so what it is for
/// given bytes never changes.
///
/// Method, URL and content type count byte for byte as given, and so does the body, with one exception: the boundary of
/// a `multipart/form-data` request is left out of account in both content type and delimiter lines. The browser draws
/// another at random each time it encodes the same `FormData` (RFC 7578 §4.1), which makes it no other request.
pub fn fingerprint(method: &str, url: &str, content_type: &str, body: &[u8]) -> String {
    let mut print = Print::default();
    print.field(method.as_bytes());
    print.field(url.as_bytes());
    match Boundary::of(content_type) {
        None => {
            print.field(content_type.as_bytes());
            print.field(body);
        }
        // What lies between two delimiters is a field of its own. That makes more fields than above, so that no request
        // of the one kind is taken for one of the other.
        Some(boundary) => {
            print.field(boundary.before);
            print.field(boundary.after);
            let mut from = 0;
            for line in Delimiters::new(body, &boundary.value) {
                print.field(body.get(from..line.start).unwrap_or_default());
                from = line.end;
            }
            print.field(body.get(from..).unwrap_or_default());
        }
    }
    print.hex()
}

/// The state: two words, mixed as MurmurHash3 x64 128 does (Austin Appleby, public domain), over fields that are each
/// preceded by their length and filled up with zeros. Two multiplications for eight bytes, all of them in the 64 bits
/// that WebAssembly has.
#[derive(Default)]
struct Print(u64, u64);

impl Print {
    /// Takes in one field.
    fn field(&mut self, bytes: &[u8]) {
        self.block(bytes.len() as u64, 0);
        let (blocks, tail) = bytes.as_chunks::<16>();
        for block in blocks {
            self.bytes(*block);
        }
        if !tail.is_empty() {
            let mut last = [0; 16];
            for (to, from) in last.iter_mut().zip(tail) {
                *to = *from;
            }
            self.bytes(last);
        }
    }

    /// Takes in sixteen bytes.
    fn bytes(&mut self, block: [u8; 16]) {
        let both = u128::from_le_bytes(block);
        self.block(both as u64, (both >> 64) as u64);
    }

    /// Takes in two words.
    fn block(&mut self, one: u64, two: u64) {
        const C1: u64 = 0x87c3_7b91_1142_53d5;
        const C2: u64 = 0x4cf5_ad43_2745_937f;
        self.0 ^= one.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        self.0 = self.0.rotate_left(27).wrapping_add(self.1);
        self.0 = self.0.wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.1 ^= two.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        self.1 = self.1.rotate_left(31).wrapping_add(self.0);
        self.1 = self.1.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    /// Ends it: every bit of the state changes half the digits.
    fn hex(self) -> String {
        let one = self.0.wrapping_add(self.1);
        let two = self.1.wrapping_add(one);
        let (one, two) = (avalanche(one), avalanche(two));
        let one = one.wrapping_add(two);
        let two = two.wrapping_add(one);
        let mut text = String::with_capacity(32);
        for word in [one, two] {
            for byte in word.to_be_bytes() {
                for nibble in [byte >> 4, byte & 0x0f] {
                    text.push(char::from(if nibble < 10 {
                        b'0' + nibble
                    } else {
                        b'a' + nibble - 10
                    }));
                }
            }
        }
        text
    }
}

/// The finaliser of MurmurHash3 for 64 bits.
fn avalanche(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;

    const URL: &str = "https://example.com/orders";

    fn multipart(content_type: &str, boundary: &str, body: &str) -> String {
        fingerprint(
            "POST",
            URL,
            &content_type.replace('~', boundary),
            body.replace('~', boundary).as_bytes(),
        )
    }

    /// The values were computed by another program (Python) from this description.
    #[test]
    fn prints_never_change() {
        let form = "--~\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--~--\r\n";
        for (print, expected) in [
            (
                fingerprint("", "", "", b""),
                "cbcd06558320e58c06f46dff15644493",
            ),
            (
                fingerprint(
                    "POST",
                    URL,
                    "application/json",
                    b"{\"a\":1,\"b\":\"twenty bytes\"}",
                ),
                "2bba998ad0ab75f0dc582d474b0a075d",
            ),
            (
                multipart("multipart/form-data; boundary=~", "B", form),
                "cf7d626a912baa89d4ed65c36ff774e9",
            ),
        ] {
            assert_eq!(print, expected);
        }
    }

    /// Requests that must all be told apart.
    #[test]
    fn other_bytes_give_another_print() {
        let mut requests: Vec<(&str, &str, &str, Vec<u8>)> = vec![
            ("POST", URL, "", b"".to_vec()),
            ("PUT", URL, "", b"".to_vec()),
            ("post", URL, "", b"".to_vec()),
            ("POST", "https://example.com/order", "s", b"".to_vec()),
            ("POST", "https://example.com/orders?", "", b"".to_vec()),
            ("POST", URL, "a", b"b".to_vec()),
            ("POST", URL, "ab", b"".to_vec()),
            ("POST", URL, "", b"ab".to_vec()),
            ("POST", URL, "", b"ba".to_vec()),
            ("POSTh", "ttps://example.com/orders", "", b"".to_vec()),
        ];
        // Zeros at the end, across the blocks; every single bit.
        for length in 1..40 {
            requests.push(("POST", URL, "", vec![0; length]));
        }
        for bit in 0..8 * 40 {
            let mut body = vec![0; 40];
            body[bit / 8] |= 1 << (bit % 8);
            requests.push(("POST", URL, "", body));
        }
        // Multipart: the parts, where they end, their order, what follows, and the type around the boundary.
        let type_ = "multipart/form-data; boundary=B";
        for body in [
            "",
            "--B--",
            "--B--\r\n",
            "--B--\r\nx",
            "--B\r\n\r\n1\r\n--B--\r\n",
            "--B\r\n\r\n1\r\n--B\r\n\r\n2\r\n--B--\r\n",
            "--B\r\n\r\n2\r\n--B\r\n\r\n1\r\n--B--\r\n",
            "--B\r\n\r\n12\r\n--B--\r\n",
            "--B\r\n\r\n1\r\n--\r\n\r\n2\r\n--B--\r\n",
            "--B\r\n\r\n1\r\n--B--\r\n\r\n2\r\n--B--\r\n",
            "--B\r\n\r\n1\r\n--C--\r\n",
            // The boundary inside a line is content.
            "--B\r\n\r\nB\r\n--B--\r\n",
            "--B\r\n\r\nC\r\n--B--\r\n",
        ] {
            requests.push(("POST", URL, type_, body.as_bytes().to_vec()));
        }
        for other in [
            "multipart/form-data; boundary=B; charset=utf-8",
            "multipart/form-data; charset=utf-8; boundary=B",
            "multipart/form-data; boundary=",
            "multipart/form-data",
            "multipart/mixed; boundary=B",
            "multipart/mixed; boundary=C",
        ] {
            requests.push(("POST", URL, other, b"--B--\r\n".to_vec()));
        }
        let mut seen = HashSet::new();
        for (method, url, content_type, body) in &requests {
            let print = fingerprint(method, url, content_type, body);
            assert_eq!(print.len(), 32);
            assert!(print
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
            assert!(seen.insert(print), "{method} {url} {content_type} {body:?}");
        }
    }

    #[test]
    fn the_boundary_is_left_out_of_account() {
        let types = [
            "multipart/form-data; boundary=~",
            "Multipart/Form-Data; charset=utf-8; boundary=\"~\"; x=y",
        ];
        let bodies = [
            "--~--\r\n",
            "--~\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--~--\r\n",
            "--~\r\n\r\n--~\r\n--~\r\n\r\n\r\n--~--\r\nepilogue",
            "--~\r\nnever closed\r\n",
        ];
        let boundaries = [
            "----WebKitFormBoundary7MA4YWxkTrZu0gW",
            "----WebKitFormBoundaryAAAAAAAAAAAAAAAA",
            "----geckoformboundary1c5d3ad6c4b1a4a2",
            "x",
        ];
        let mut seen = HashSet::new();
        for content_type in types {
            for body in bodies {
                let prints: HashSet<String> = boundaries
                    .iter()
                    .map(|boundary| multipart(content_type, boundary, body))
                    .collect();
                assert_eq!(prints.len(), 1, "{content_type} {body:?}");
                seen.extend(prints);
            }
        }
        assert_eq!(seen.len(), types.len() * bodies.len());
        // Quotes around the boundary are no part of anything.
        assert_eq!(
            multipart("multipart/form-data; boundary=\"~\"", "B", "--~--"),
            multipart("multipart/form-data; boundary=~", "C", "--~--")
        );
    }

    #[cfg(not(target_arch = "wasm32"))]
    mod properties {
        use super::*;
        use proptest::collection::vec;
        use proptest::prelude::*;

        fn encode(boundary: &str, parts: &[Vec<u8>]) -> Vec<u8> {
            let mut body = Vec::new();
            for part in parts {
                body.extend_from_slice(
                    &[b"--", boundary.as_bytes(), b"\r\n\r\n", part, b"\r\n"].concat(),
                );
            }
            body.extend_from_slice(&[b"--", boundary.as_bytes(), b"--\r\n"].concat());
            body
        }

        proptest! {
            #[test]
            fn two_encodings_of_one_form_have_one_print_and_two_forms_have_two(
                parts in vec(vec(any::<u8>(), 0..40), 0..4),
                others in vec(vec(any::<u8>(), 0..40), 0..4),
                boundaries in ("[0-9A-Za-z-]{20,70}", "[0-9A-Za-z-]{20,70}"),
            ) {
                let print = |boundary: &str, parts: &[Vec<u8>]| {
                    let content_type = format!("multipart/form-data; boundary={boundary}");
                    fingerprint("POST", URL, &content_type, &encode(boundary, parts))
                };
                let one = print(&boundaries.0, &parts);
                prop_assert_eq!(&one, &print(&boundaries.1, &parts));
                prop_assert_eq!(one == print(&boundaries.1, &others), parts == others);
            }

            #[test]
            fn anything_may_be_thrown_at_it(
                strings in (any::<String>(), any::<String>(), any::<String>()),
                parameters in "[ -~]{0,40}",
                body in vec(any::<u8>(), 0..100),
            ) {
                prop_assert_eq!(fingerprint(&strings.0, &strings.1, &strings.2, &body).len(), 32);
                let content_type = format!("multipart/form-data;{parameters}");
                prop_assert_eq!(fingerprint("POST", URL, &content_type, &body).len(), 32);
            }
        }
    }
}
