//! Listening sockets: one a worker on one address, so that the kernel deals connections out and no thread hands them on.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

const BACKLOG: i32 = 4096;

/// Opens `count` listeners on one address; with port 0 all share the port that the first was given.
///
/// # Errors
///
/// When the address is taken, by anyone: sharing is only among these.
pub fn listeners(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    // SO_REUSEPORT lets another process of the same user join without a word; a bind without it finds out.
    if address.port() != 0 {
        socket(address, false)?;
    }
    let first = open(address)?;
    let shared = first.local_addr()?;
    let mut all = vec![first];
    while all.len() < count {
        all.push(open(shared)?);
    }
    Ok(all)
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address, true)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_an_address_that_nobody_else_can_have() {
        let all = listeners("127.0.0.1:0".parse().unwrap(), 3).unwrap();
        let address = all[0].local_addr().unwrap();
        assert!(all.iter().all(|one| one.local_addr().unwrap() == address));
        assert_eq!(listeners(address, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
