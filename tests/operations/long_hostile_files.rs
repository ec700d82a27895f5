//! Files and headers with random mistakes, from seeds: nothing panics, and what is read is within its bounds. `WEIR_FUZZ_SECONDS`
//! says how long, for all four together; `WEIR_FUZZ_SEED` which seed comes first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use weir_config::{Config, read_jwks, read_tokens};
use weir_node::access::CallerName;
use weir_testing::clients::root;
use weir_time::clock::monotonic;

use crate::support::certificates::Authority;

/// However fast the machine is, this many seeds are tried at least.
const FEWEST: u64 = 200;

/// Changes bytes, cuts, doubles and moves parts of one of the samples.
fn mutated(samples: &[Vec<u8>], random: &mut SmallRng) -> Vec<u8> {
    let below = |random: &mut SmallRng, most: usize| random.next_u32() as usize % most.max(1);
    let mut bytes = samples[below(random, samples.len())].clone();
    for _ in 0..=below(random, 8) {
        let (at, length) = (below(random, bytes.len()), below(random, 40));
        let end = (at + length).min(bytes.len());
        match random.next_u32() % 6 {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(random, 8),
            1 if at < bytes.len() => bytes[at] = random.next_u32().to_le_bytes()[0],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = below(random, bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            4 => bytes.truncate(at),
            _ => {
                let other = &samples[below(random, samples.len())];
                let from = below(random, other.len());
                let part = &other[from..(from + length).min(other.len())];
                bytes.splice(at..at, part.iter().copied());
            }
        }
    }
    bytes
}

/// Tries seeds for a quarter of the time. `read` returns true if it has read something.
fn fuzz(what: &str, samples: &[Vec<u8>], read: impl Fn(&[u8]) -> bool) {
    assert!(samples.iter().all(|sample| read(sample)), "{what}: a sample is not read");
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let seconds = number("WEIR_FUZZ_SECONDS", 8);
    let first = number("WEIR_FUZZ_SEED", 0);
    let end = monotonic() + Duration::from_secs(seconds) / 4;
    let (mut seed, mut good) = (first, 0_u64);
    while seed < first + FEWEST || monotonic() < end {
        let bytes = mutated(samples, &mut SmallRng::seed_from_u64(seed));
        match catch_unwind(AssertUnwindSafe(|| read(&bytes))) {
            Ok(is_read) => good += u64::from(is_read),
            Err(_) => panic!("{what}: the seed is {seed}: {:?}", String::from_utf8_lossy(&bytes)),
        }
        seed += 1;
    }
    println!("{what}: {} seeds, {good} of them were read", seed - first);
    assert!(good > 0 && good < seed - first, "{what}: the samples are too much alike");
}

#[test]
fn certificates_with_random_mistakes() {
    let authority = Authority::create();
    let names: [&[&str]; 3] = [&["weir.example"], &["a.example", "b.example"], &["*.example", "x"]];
    let samples = names.iter().enumerate().map(|(number, names)| {
        let issued = authority.issue(&format!("fuzzed-{number}"), names);
        let pem = std::fs::read(issued.cert).unwrap();
        first_certificate(&pem)
    });
    let samples: Vec<Vec<u8>> = samples.collect();
    fuzz("certificates", &samples, |der| {
        CallerName::of_certificate(der).inspect(|name| assert!(name.shown().len() <= 2_304)).is_some()
    });
}

/// The first certificate of a PEM file.
fn first_certificate(pem: &[u8]) -> Vec<u8> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::from_pem_slice(pem).unwrap().to_vec()
}

#[test]
fn headers_of_proxies_with_random_mistakes() {
    let samples = [
        "By=spiffe://mesh/weir;Hash=ab;URI=spiffe://prod/shop",
        "URI=\"spiffe://prod/a\";Subject=\"CN=\\\"x\\\"\",By=y;URI=spiffe://prod/other",
        "Hash=1,URI=spiffe://prod/ns/default/sa/shop;DNS=a;DNS=b",
    ];
    let samples = samples.map(|sample| sample.as_bytes().to_vec());
    fuzz("x-forwarded-client-cert", &samples, |header| {
        CallerName::of_forwarded(header)
            .inspect(|name| assert!(name.shown().starts_with("spiffe://")))
            .is_some()
    });
}

#[test]
fn key_sets_and_tokens_with_random_mistakes() {
    let coordinate = "A".repeat(42) + "E";
    let modulus = format!("g{}Q", "A".repeat(340));
    let keys = json!({ "keys": [
        { "kty": "RSA", "kid": "a", "use": "sig", "alg": "RS256", "n": modulus, "e": "AQAB" },
        { "kty": "EC", "crv": "P-256", "kid": "b", "x": coordinate, "y": coordinate },
        { "kty": "OKP", "crv": "Ed25519", "x": coordinate },
    ] });
    let tokens =
        format!("# tokens\nshop {}\nops {} 2027-01-31T00:00:00Z\n", "ab".repeat(32), "cd".repeat(32));
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    let write = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
    };
    fuzz("JWKS", &[keys.to_string().into_bytes()], |bytes| {
        write(bytes);
        read_jwks(&path).is_ok()
    });
    fuzz("tokens", &[tokens.into_bytes()], |bytes| {
        write(bytes);
        read_tokens(&path).is_ok()
    });
}

#[test]
fn configurations_with_random_mistakes() {
    let mut samples = vec![std::fs::read(root().join("crates/config/src/example.yaml")).unwrap()];
    for name in ["adaptive", "leases", "queues", "tiers", "llm", "nginx"] {
        samples.push(std::fs::read(root().join(format!("docs/examples/{name}.yaml"))).unwrap());
    }
    let read = |bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        match Config::parse(text, "weir.yaml", &weir::features::overrides()) {
            Ok(_) => true,
            Err(errors) => {
                assert!(!errors.to_string().is_empty());
                false
            }
        }
    };
    let samples: Vec<Vec<u8>> = samples.into_iter().filter(|sample| read(sample)).collect();
    assert!(samples.len() >= 4, "most of them are whole configurations");
    fuzz("YAML", &samples, read);
}
