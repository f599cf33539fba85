//! What follows a switch of protocols (RFC 9110 7.8): bytes both ways until both sides have ended or fallen silent.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::caller::InFlight;
use super::progress::{Progress, while_moving};

/// How long both sides may be silent; it is noticed after twice that at the latest. Peers that mean to stay send pings (RFC 6455 5.5.2) far more often; a client that
/// has vanished sends nothing, and must not keep its place for ever.
const SILENCE: Duration = Duration::from_mins(10);

/// Carries bytes between a client and an upstream that have both switched, and keeps `in_flight` as long.
pub(crate) fn open(client: OnUpgrade, upstream: OnUpgrade, in_flight: Option<InFlight>) {
    tokio::spawn(async move {
        let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
        carry(TokioIo::new(client), TokioIo::new(upstream), SILENCE).await;
        drop(in_flight);
    });
}

/// Returns when both sides have ended, one has failed, or neither has said anything for `silence` to twice that.
async fn carry<A, B>(client: A, upstream: B, silence: Duration)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let progress = Arc::<Progress>::default();
    let mut client = Heard { side: client, progress: Arc::clone(&progress) };
    let mut upstream = Heard { side: upstream, progress: Arc::clone(&progress) };
    let both = pin!(tokio::io::copy_bidirectional(&mut client, &mut upstream));
    // Either side may end as it likes: there is nobody left to tell.
    let _ = while_moving(both, silence, Some(&progress)).await;
}

/// One side of a tunnel; that it says something is progress.
struct Heard<T> {
    side: T,
    progress: Arc<Progress>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Heard<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.side).poll_read(cx, buf);
        if read.is_ready() {
            this.progress.moved();
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Heard<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().side).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().side).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().side).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    /// As long as one side still talks, the other may listen; then both are ended.
    #[tokio::test(start_paused = true)]
    async fn a_tunnel_ends_when_both_sides_are_silent() {
        let (mut client, ours) = duplex(64);
        let (theirs, mut upstream) = duplex(64);
        let tunnel = tokio::spawn(carry(ours, theirs, SILENCE));
        let mut heard = [0];
        for _ in 0..10 {
            tokio::time::sleep(SILENCE * 3 / 4).await;
            upstream.write_all(b"x").await.unwrap();
            client.read_exact(&mut heard).await.unwrap();
        }
        let since = Instant::now();
        tunnel.await.unwrap();
        assert!((SILENCE..=SILENCE * 2).contains(&since.elapsed()), "{:?}", since.elapsed());
        assert_eq!((client.read(&mut heard).await.unwrap(), upstream.read(&mut heard).await.unwrap()), (0, 0));
    }
}
