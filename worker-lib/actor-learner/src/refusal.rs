//! Errors that are caused by rejected credentials. If a shard, a learner or a cell rejects credentials, the
//! configuration is at fault, so retries would not help.

use iswitch_models::ModelError;
use iswitch_replay::client::{ClientError, Code};

use super::ActorLearnerError;

const NO_TOKEN: u16 = 401;

/// Advice to the user for each kind of rejection. Each kind of server has advice of its own, which names the
/// command-line options of that server and of its clients.
struct Advice {
    token: &'static str,
    authority: &'static str,
    certificate: &'static str,
}

const REPLAY: Advice = Advice {
    token: "pass the token from the shards' --token-file with --replay-token-file",
    authority: "a CA in --replay-ca must have issued the shard's --tls-cert for the host in the shard's address",
    certificate: "pass a certificate issued by a CA in the shard's --tls-client-ca with --replay-cert and --replay-key",
};

const MODELS: Advice = Advice {
    token: "pass the token from the learner's --model-read-token-file, or from the cell's --read-token-file, with \
            --model-token-file",
    authority: "a CA in --model-ca must have issued the certificate of the learner or the cell for the host in \
                --models",
    certificate: "pass a certificate issued by a CA in the learner's --model-client-ca, or in the cell's --client-ca, \
                  with --model-cert and --model-key",
};

/// Returns the error with the next step for the user if it was caused by rejected credentials, and `None` otherwise.
pub(super) fn of_replay(error: &ClientError) -> Option<ActorLearnerError> {
    let is_token = matches!(error, ClientError::Refused { code: Code::Unauthenticated, .. });
    refusal(is_token, error.to_string(), &REPLAY)
}

/// Same as [`of_replay`], but for an error of the model client.
pub(super) fn of_models(error: &ModelError) -> Option<ActorLearnerError> {
    let is_token = matches!(error, ModelError::Refused { status, .. } if status.as_u16() == NO_TOKEN);
    refusal(is_token, error.to_string(), &MODELS)
}

fn refusal(is_token: bool, error: String, options: &Advice) -> Option<ActorLearnerError> {
    // Search the text of the error, because hyper and h2 do not preserve the type of a rustls error.
    let next_step = if is_token {
        options.token
    } else if error.contains("invalid peer certificate") {
        options.authority
    } else if error.contains("received fatal alert") {
        options.certificate
    } else {
        return None;
    };
    Some(ActorLearnerError::Credentials { error, next_step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_credentials_names_the_option() {
        let refused = |code, text: &str| {
            of_replay(&ClientError::Refused { shard: "s".to_owned(), code, text: text.to_owned() })
                .map(|error| error.to_string())
        };
        let token = refused(Code::Unauthenticated, "no valid token").unwrap();
        assert!(
            token.starts_with("shard s: no valid token: pass") && token.contains("--replay-token-file"),
            "{token}"
        );
        let authority = refused(Code::Unknown, "invalid peer certificate: UnknownIssuer").unwrap();
        assert!(authority.contains("--replay-ca"), "{authority}");
        let certificate = refused(Code::Unknown, "received fatal alert: CertificateRequired").unwrap();
        assert!(certificate.contains("--replay-cert"), "{certificate}");
        assert_eq!(refused(Code::DeadlineExceeded, "nothing to draw"), None);
        let unreachable =
            |reason: &str| ModelError::Unreachable { source_name: "m".to_owned(), reason: reason.to_owned() };
        let authority =
            of_models(&unreachable("invalid peer certificate: UnknownIssuer")).unwrap().to_string();
        assert!(authority.contains("--model-ca"), "{authority}");
        assert!(of_models(&unreachable("Connection refused")).is_none());
    }
}
