//! Questions to a name server on loopback, which answers in an order of ours.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use conn::names::{NamesError, ask};
use fault::{Explain, Fault};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::rdata::svcb::{EchConfigList, SVCB, SvcParamKey, SvcParamValue};
use hickory_proto::rr::rdata::{A, AAAA, HTTPS};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tls::ech::Keys;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use crate::common::PATIENCE;

const HOST: &str = "www.example";
const PUBLIC: &str = "public.example";

/// Takes the three questions, then answers them in this order; what `answer` gives none for stays unanswered.
async fn serve(
    order: [RecordType; 3],
    answer: impl Fn(RecordType) -> Option<Result<Vec<RData>, ResponseCode>> + Send + 'static,
) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut questions = Vec::new();
        let mut bytes = [0; 1500];
        while questions.len() < order.len() {
            let (len, from) = socket.recv_from(&mut bytes).await.unwrap();
            questions.push((Message::from_vec(&bytes[..len]).unwrap(), from));
        }
        for kind in order {
            let asked = questions.iter().find(|(one, _)| one.queries[0].query_type == kind);
            let (question, from) = asked.unwrap();
            let Some(data) = answer(kind) else { continue };
            let metadata = &question.metadata;
            let mut said = Message::response(metadata.id, metadata.op_code);
            said.add_query(question.queries[0].clone());
            match data {
                Ok(records) => {
                    for data in records {
                        let name = question.queries[0].name.clone();
                        said.add_answer(Record::from_rdata(name, 60, data));
                    }
                }
                Err(code) => said.metadata.response_code = code,
            }
            // What answers nothing that was asked is to be passed over: garbage, with the question's number too, an
            // answer with another number, and one to another question.
            let id = metadata.id.to_be_bytes();
            let mut other_id = Message::response(metadata.id ^ 1, metadata.op_code);
            other_id.metadata.response_code = ResponseCode::NXDomain;
            other_id.add_query(question.queries[0].clone());
            let mut other_name = Message::response(metadata.id, metadata.op_code);
            other_name.metadata.response_code = ResponseCode::NXDomain;
            let name = Name::from_ascii("other.example.").unwrap();
            other_name.add_query(Query::query(name, kind));
            let (other_id, other_name) = (other_id.to_vec().unwrap(), other_name.to_vec().unwrap());
            for stray in
                [b"??".as_slice(), &id, &[&id[..], &[0xff; 40]].concat(), &other_id, &other_name]
            {
                socket.send_to(stray, from).await.unwrap();
            }
            socket.send_to(&said.to_vec().unwrap(), from).await.unwrap();
            // The next answer comes later by more than a clock's step.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    address
}

fn https(list: &[u8]) -> RData {
    let ech = SvcParamValue::EchConfigList(EchConfigList(list.to_vec()));
    let params = vec![(SvcParamKey::EchConfigList, ech)];
    RData::HTTPS(HTTPS(SVCB::new(1, Name::root(), params)))
}

fn data(kind: RecordType, list: &[u8]) -> Vec<RData> {
    match kind {
        RecordType::A => vec![RData::A(A(Ipv4Addr::new(192, 0, 2, 1)))],
        RecordType::AAAA => vec![RData::AAAA(AAAA(Ipv6Addr::LOCALHOST))],
        _ => vec![https(list)],
    }
}

/// Answers each question at once with these addresses: in datagrams cut off for what `is_cut`, over TCP whole, if there is
/// to be any.
async fn serve_cut(is_cut: fn(RecordType) -> bool, has_tcp: bool) -> SocketAddr {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = UdpSocket::bind(address).await.unwrap();
    let answer = |bytes: &[u8], cut: fn(RecordType) -> bool| {
        let question = Message::from_vec(bytes).unwrap();
        let mut said = Message::response(question.metadata.id, question.metadata.op_code);
        let query = question.queries[0].clone();
        let kind = query.query_type;
        said.metadata.truncation = cut(kind);
        if !cut(kind) {
            for data in data(kind, &[]).into_iter().filter(|_| kind != RecordType::HTTPS) {
                said.add_answer(Record::from_rdata(query.name.clone(), 60, data));
            }
        }
        said.add_query(query);
        said.to_vec().unwrap()
    };
    tokio::spawn(async move {
        let mut bytes = [0; 1500];
        loop {
            let (len, from) = udp.recv_from(&mut bytes).await.unwrap();
            udp.send_to(&answer(&bytes[..len], is_cut), from).await.unwrap();
        }
    });
    if has_tcp {
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = tcp.accept().await.unwrap();
                let mut bytes = vec![0; stream.read_u16().await.unwrap().into()];
                stream.read_exact(&mut bytes).await.unwrap();
                let whole = answer(&bytes, |_| false);
                stream.write_u16(whole.len().try_into().unwrap()).await.unwrap();
                // In pieces, as a stream may bring it.
                for piece in whole.chunks(7) {
                    stream.write_all(piece).await.unwrap();
                }
            }
        });
    }
    address
}

#[tokio::test]
async fn what_does_not_fit_a_datagram_is_asked_for_over_tcp() {
    let server = serve_cut(|kind| kind != RecordType::AAAA, true).await;
    let names = ask(server, HOST, PATIENCE).await.unwrap();
    assert!(names.truncated && names.addresses.len() == 2, "{names:?}");
    assert!(names.a_ms.is_some() && names.aaaa_ms.is_some() && names.https_ms.is_some());
    // Nobody listens: the question is given up, and the others stand.
    let server = serve_cut(|kind| kind == RecordType::HTTPS, false).await;
    let names = ask(server, HOST, PATIENCE).await.unwrap();
    assert!(names.truncated && names.https_ms.is_none() && names.addresses.len() == 2, "{names:?}");
    let server = serve_cut(|_| false, true).await;
    assert!(!ask(server, HOST, PATIENCE).await.unwrap().truncated);
}

const LATE: [RecordType; 3] = [RecordType::A, RecordType::AAAA, RecordType::HTTPS];

#[tokio::test]
async fn a_record_that_comes_last_is_waited_for() {
    let list = Keys::generate(PUBLIC, 1).unwrap().config_list().to_vec();
    let published = list.clone();
    let server = serve(LATE, move |kind| Some(Ok(data(kind, &published)))).await;
    let names = ask(server, HOST, PATIENCE).await.unwrap();
    assert_eq!(names.addresses.len(), 2);
    let ech = names.ech().unwrap();
    assert_eq!((ech.list.as_slice(), ech.bytes), (list.as_slice(), list.len()));
    assert_eq!(ech.public_names, [PUBLIC]);
    let (a, aaaa, https) = (names.a_ms.unwrap(), names.aaaa_ms.unwrap(), names.https_ms.unwrap());
    assert!(a <= aaaa && aaaa <= https, "{names:?}");
    assert_eq!(names.wait_ms(), Some(https - a));
}

#[tokio::test]
async fn a_record_that_comes_first_costs_nothing() {
    let order = [RecordType::HTTPS, RecordType::AAAA, RecordType::A];
    let list = Keys::generate(PUBLIC, 1).unwrap().config_list().to_vec();
    let server = serve(order, move |kind| Some(Ok(data(kind, &list)))).await;
    let names = ask(server, HOST, PATIENCE).await.unwrap();
    assert_eq!((names.wait_ms(), names.ech().is_some()), (Some(0.0), true));
}

#[tokio::test]
async fn a_name_without_a_record_has_no_ech() {
    let none = |kind| match kind {
        RecordType::A => Some(Ok(data(kind, &[]))),
        _ => Some(Ok(Vec::new())),
    };
    let server = serve(LATE, none).await;
    let names = ask(server, HOST, PATIENCE).await.unwrap();
    assert!(names.ech().is_none() && names.https.is_empty() && names.wait_ms().is_some());
    // AAAA has no address: its answer is not where a client goes on.
    assert_eq!(names.address_ms(), names.a_ms);
}

#[tokio::test]
async fn a_garbled_list_is_one_clear_error() {
    let mut list = Keys::generate(PUBLIC, 1).unwrap().config_list().to_vec();
    list.truncate(20);
    let server = serve(LATE, move |kind| Some(Ok(data(kind, &list)))).await;
    let error = ask(server, HOST, PATIENCE).await.unwrap_err();
    assert!(matches!(error, NamesError::Garbled { question: "HTTPS", .. }), "{error}");
    assert!(error.to_string().contains("ECHConfigList"), "{error}");
    assert_eq!(error.fault(), Fault::Peer);
}

#[tokio::test]
async fn a_name_that_is_not_there_is_refused() {
    let server = serve(LATE, |_| Some(Err(ResponseCode::NXDomain))).await;
    let error = ask(server, HOST, PATIENCE).await.unwrap_err();
    assert!(matches!(error, NamesError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(HOST), "{error}");
    let error = ask(server, "a..b", PATIENCE).await.unwrap_err();
    assert!(matches!(error, NamesError::NoName(_)), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_missing_is_no_wait_and_none_at_all_is_said() {
    let server = serve(LATE, |kind| (kind == RecordType::A).then(|| Ok(data(kind, &[])))).await;
    let names = ask(server, HOST, Duration::from_millis(300)).await.unwrap();
    assert_eq!((names.https_ms, names.wait_ms()), (None, None));
    assert!(names.address_ms().is_some());
    let server = serve(LATE, |_| None).await;
    let error = ask(server, HOST, Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, NamesError::Silent { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_only_if_none_follows() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut bytes = [0; 1500];
        while let Ok((_, from)) = socket.recv_from(&mut bytes).await {
            socket.send_to(&[&bytes[..2], &[0xff; 40]].concat(), from).await.unwrap();
        }
    });
    let error = ask(server, HOST, Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, NamesError::Garbled { .. }), "{error}");
}

#[tokio::test]
async fn numbers_of_questions_are_drawn_each_by_itself() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = socket.local_addr().unwrap();
    let asking = tokio::spawn(async move { ask(server, HOST, Duration::from_millis(300)).await });
    let mut ids = Vec::new();
    let mut bytes = [0; 1500];
    for _ in 0..3 {
        let (len, _) = socket.recv_from(&mut bytes).await.unwrap();
        ids.push(Message::from_vec(&bytes[..len]).unwrap().metadata.id);
    }
    asking.abort();
    let steps: Vec<u16> = ids.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    // By chance once in 2^32.
    assert_ne!(steps, [1, 1], "{ids:?}");
}
