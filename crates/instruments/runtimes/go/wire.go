// The server's first flight, as the wire shows it.
package main

import "net"

// What the server's first flight shows of a handshake.
type flight struct {
	resumed bool
	group   int // of the key exchange; 0 where there was none
}

// In a group's place: the server wants another hello.
const retry = -1

// Reads the server's first flight as far as it is there; the second result is whether that is enough.
func look(seen []byte) (shown flight, enough bool) {
	const changeCipherSpec, handshake, serverHello, certificate, keyExchange = 20, 22, 2, 11, 12
	begun, full := false, false
	for len(seen) >= 5 {
		kind, size := seen[0], int(seen[3])<<8|int(seen[4])
		if len(seen) < 5+size {
			return shown, false
		}
		payload := seen[5 : 5+size]
		seen = seen[5+size:]
		// TLS 1.2: keys change before any certificate came (RFC 5246 §7.3).
		if kind == changeCipherSpec && begun {
			return flight{resumed: true}, true
		}
		for kind == handshake && len(payload) >= 4 {
			size := int(payload[1])<<16 | int(payload[2])<<8 | int(payload[3])
			if len(payload) < 4+size {
				return shown, false
			}
			body := payload[4 : 4+size]
			switch {
			case payload[0] == serverHello:
				tls13, psk, group := hello(body)
				if tls13 {
					return flight{psk, group}, true
				}
				begun = true
			case payload[0] == certificate:
				full = true
			// RFC 8422 §5.4: a named curve, and which.
			case payload[0] == keyExchange && full && size >= 3 && body[0] == 3:
				return flight{false, int(body[1])<<8 | int(body[2])}, true
			}
			payload = payload[4+size:]
		}
	}
	return shown, false
}

// A ServerHello: whether it is of TLS 1.3, whether it takes a pre-shared key (RFC 8446 §4.2.11), the group.
func hello(body []byte) (tls13, psk bool, group int) {
	const random, supportedVersions, preSharedKey, keyShare = 34, 43, 41, 51
	if len(body) < random+1 {
		return
	}
	at := random + 1 + int(body[random]) + 3 + 2
	for len(body) >= at+4 {
		kind, size := int(body[at])<<8|int(body[at+1]), int(body[at+2])<<8|int(body[at+3])
		value := body[at+4:]
		switch {
		case len(value) < size:
			return
		case kind == supportedVersions && size == 2:
			tls13 = value[0] == 3 && value[1] == 4
		case kind == preSharedKey:
			psk = true
		// RFC 8446 §4.2.8: a HelloRetryRequest has the group alone.
		case kind == keyShare && size == 2:
			group = retry
		case kind == keyShare && size > 2:
			group = int(value[0])<<8 | int(value[1])
		}
		at += 4 + size
	}
	return
}

// A connection of which the server's first flight is kept: what comes in, or at the server goes out.
type tap struct {
	net.Conn
	outgoing, enough bool
	seen             []byte
	shown            flight
}

func (t *tap) keep(bytes []byte) {
	if !t.enough && len(t.seen)+len(bytes) <= maxFlight {
		t.seen = append(t.seen, bytes...)
		t.shown, t.enough = look(t.seen)
	}
}

func (t *tap) Read(bytes []byte) (int, error) {
	got, err := t.Conn.Read(bytes)
	if !t.outgoing {
		t.keep(bytes[:got])
	}
	return got, err
}

func (t *tap) Write(bytes []byte) (int, error) {
	if t.outgoing {
		t.keep(bytes)
	}
	return t.Conn.Write(bytes)
}
