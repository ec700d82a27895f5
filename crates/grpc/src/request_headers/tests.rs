use weir_time::clock::monotonic;

use super::*;
use crate::service::HotMethod;

const HOT: &str = "/weir.v1.RateLimitService/ShouldAllow";

const REQUEST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), ("te", "trailers")];

fn read(fields: &[(&str, &str)]) -> Result<RequestHead, HeaderFault> {
    let hot = HotMethod { path: HOT, largest_message: 1000, together: true, streaming: false };
    let methods = Methods::new(vec![hot], 1000);
    let mut reader = HeaderReader::of_request(1000, &methods);
    for (name, value) in fields {
        reader.field(HeaderField { name: name.as_bytes(), value: value.as_bytes(), allowed: true });
    }
    reader.request()
}

#[test]
fn what_no_request_says_is_malformed() {
    let more = |field| read(&[&REQUEST[..], &[field]].concat()).err();
    assert_eq!(more(("x", "y")), None);
    for field in [
        (":scheme", "http"),
        (":authority", "late"),
        ("connection", "close"),
        ("te", "gzip"),
        ("content-length", "-1"),
    ] {
        assert_eq!(more(field), Some(HeaderFault::Malformed), "{field:?}");
    }
    for missing in 0..3 {
        let mut fields = REQUEST.to_vec();
        fields.remove(missing);
        assert_eq!(read(&fields).err(), Some(HeaderFault::Malformed), "without {:?}", REQUEST[missing]);
        let twice = [&REQUEST[missing..=missing], &REQUEST[..]].concat();
        assert_eq!(read(&twice).err(), Some(HeaderFault::Malformed), "twice {:?}", REQUEST[missing]);
    }
    assert_eq!(read(&[&[(":status", "200")], &REQUEST[..]].concat()).err(), Some(HeaderFault::Malformed));
    assert_eq!(more(("x", &"y".repeat(1000))), Some(HeaderFault::TooLarge));
}

#[test]
fn a_request_keeps_what_its_service_looks_at() {
    let long = "y".repeat(500);
    for path in [REQUEST[2].1, HOT] {
        let fields = [
            &[REQUEST[0], REQUEST[1], (":path", path)][..],
            &[("grpc-timeout", "1S"), ("x", "1"), ("grpc-timeout", "2H"), ("content-length", "7")],
        ];
        let mut head = read(&fields.concat()).unwrap();
        head.set_deadline(monotonic);
        assert_eq!(head.method.is_some(), path == HOT);
        assert_eq!(head.length, Some(7));
        let deadline = head.deadline();
        let soon = monotonic() + std::time::Duration::from_secs(60);
        assert!(deadline.unwrap() < soon, "the first one counts");
        assert_eq!(head.kept().bytes(), 0);
        let request = head.request(());
        assert_eq!(request.method(), http::Method::POST);
        assert_eq!(request.headers().len(), 0);
        let encoded = read(&[fields[0], &[("grpc-encoding", &long)]].concat()).unwrap();
        assert_eq!(encoded.encoding.unwrap().len(), MAX_ENCODING);
        let plain = read(&[fields[0], &[("grpc-encoding", "identity"), ("grpc-timeout", "x")]].concat());
        assert!(plain.unwrap().encoding.is_none());
    }
    assert_eq!(read(&REQUEST).unwrap().request(()).uri().path(), REQUEST[2].1);
}

#[test]
fn what_is_not_grpc_is_told_so_in_https_words() {
    let with = |name, value| {
        let others = REQUEST.iter().filter(|field| field.0 != name);
        read(&[&[(name, value)], &others.copied().collect::<Vec<_>>()[..]].concat()).err()
    };
    let typed = |value| read(&[&REQUEST[..], &[("content-type", value)]].concat()).err();
    for fine in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
        assert_eq!(typed(fine), None, "{fine}");
    }
    for other in ["application/json", "application/grpc-web", "application/grpc-web+proto", ""] {
        assert_eq!(typed(other), Some(HeaderFault::NotGrpc(StatusCode::UNSUPPORTED_MEDIA_TYPE)), "{other}");
    }
    for verb in ["GET", "PRI", "post"] {
        assert_eq!(
            with(":method", verb),
            Some(HeaderFault::NotGrpc(StatusCode::METHOD_NOT_ALLOWED)),
            "{verb}"
        );
    }
    assert_eq!(with(":method", "a b"), Some(HeaderFault::Malformed));
}
