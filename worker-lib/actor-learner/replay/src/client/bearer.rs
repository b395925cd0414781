//! gRPC channel that adds a token to each request.

use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, header};
use tonic::body::Body;
use tonic::transport::Channel;
use tower_service::Service;

use crate::server::Token;

/// A gRPC channel to a shard, with the token that is added to each request.
#[derive(Clone)]
pub(super) struct Bearer {
    channel: Channel,
    header: Option<HeaderValue>,
}

impl Bearer {
    pub(super) fn new(channel: Channel, token: Option<&Token>) -> Self {
        Self { channel, header: token.map(Token::header) }
    }
}

impl Service<Request<Body>> for Bearer {
    type Response = Response<Body>;
    type Error = tonic::transport::Error;
    type Future = <Channel as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.channel.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(header) = &self.header {
            request.headers_mut().insert(header::AUTHORIZATION, header.clone());
        }
        self.channel.call(request)
    }
}
