//! A proxy that copies bytes: the least that any server between a client and an upstream can cost
//! on the same stack.

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// Serves until the process is ended. Prints its port when it listens.
pub async fn serve(port: u16, upstream: u16) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .map_err(|e| e.to_string())?;
    println!(
        "{}",
        listener.local_addr().map_err(|e| e.to_string())?.port()
    );
    let mut connector = hyper_util::client::legacy::connect::HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        let _ = socket.set_nodelay(true);
        let client = client.clone();
        tokio::task::spawn_local(async move {
            let forward = service_fn(move |mut request: Request<Incoming>| {
                let path = request.uri().path().to_owned();
                *request.uri_mut() = format!("http://127.0.0.1:{upstream}{path}")
                    .parse::<Uri>()
                    .expect("a URI");
                client.request(request)
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), forward)
                .await;
        });
    }
}
