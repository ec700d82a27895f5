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
