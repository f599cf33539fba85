//! What a judgement becomes: fields on the inner answer, or an answer of ours. The one place for HTTP and gRPC.

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};

use crate::http::path::BadPath;
use crate::http::{cors, fields, grpc, problem};
use crate::limiter::Judgement;
use crate::policy::Policy;

/// The refusal of a judgement, as the asker can read it.
pub(super) fn refusal(judgement: &Judgement, method: &Method, asked: &HeaderMap) -> Response<Bytes> {
    let policy = judgement.policy();
    let (dialects, now_us) = (&policy.dialects, judgement.now_us());
    let answer = judgement.with_verdict(|verdict| {
        if grpc::is_grpc_call(method, asked) {
            return grpc::refusal(&verdict, dialects, asked, now_us);
        }
        let status = judgement.refused_by().and_then(|budget| policy.reject_status(budget));
        problem::refusal(&verdict, dialects, policy.docs.as_deref(), status, now_us)
    });
    ours(answer, policy, method, asked)
}

/// The answer to a request that names no path or host that we would judge.
pub(super) fn bad_request(why: BadPath, policy: &Policy, method: &Method, asked: &HeaderMap) -> Response<Bytes> {
    let answer = if grpc::is_grpc_call(method, asked) {
        grpc::problem(StatusCode::BAD_REQUEST, &why.to_string(), asked)
    } else {
        problem::bad_request(why)
    };
    ours(answer, policy, method, asked)
}

/// The answer when the store failed and the policy would rather refuse.
pub(super) fn store_down(policy: &Policy, method: &Method, asked: &HeaderMap) -> Response<Bytes> {
    let answer = if grpc::is_grpc_call(method, asked) {
        grpc::problem(StatusCode::SERVICE_UNAVAILABLE, "the limits can't be checked now", asked)
    } else {
        problem::store_down()
    };
    ours(answer, policy, method, asked)
}

/// Adds our fields to the answer of the inner service.
pub(super) fn say(judgement: &Judgement, headers: &mut HeaderMap) {
    let policy = judgement.policy();
    judgement.with_verdict(|verdict| fields::write(headers, &verdict, &policy.dialects, judgement.now_us()));
    if policy.cors.is_some() {
        cors::expose(headers);
    }
}

fn ours(mut answer: Response<Bytes>, policy: &Policy, method: &Method, asked: &HeaderMap) -> Response<Bytes> {
    if let Some(rules) = &policy.cors {
        cors::allow(answer.headers_mut(), asked, rules);
    }
    problem::for_method(answer, method)
}
