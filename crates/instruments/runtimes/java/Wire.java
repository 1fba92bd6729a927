// The server's first flight, as the wire shows it.

import java.io.FilterInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.util.Arrays;

/** A socket that shows the server's first flight: what comes in, or at the server goes out. */
final class Tap extends Socket {
    final Wire wire = new Wire();
    private final boolean outgoing;

    Tap(boolean outgoing) {
        this.outgoing = outgoing;
    }

    @Override
    public InputStream getInputStream() throws IOException {
        InputStream in = super.getInputStream();
        return outgoing ? in : new FilterInputStream(in) {
            @Override
            public int read() throws IOException {
                byte[] one = new byte[1];
                return read(one, 0, 1) < 1 ? -1 : one[0] & 0xff;
            }

            @Override
            public int read(byte[] bytes, int from, int len) throws IOException {
                int got = in.read(bytes, from, len);
                wire.keep(bytes, from, got);
                return got;
            }
        };
    }

    @Override
    public OutputStream getOutputStream() throws IOException {
        OutputStream out = super.getOutputStream();
        return !outgoing ? out : new FilterOutputStream(out) {
            @Override
            public void write(int one) throws IOException {
                write(new byte[] {(byte) one}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int from, int len) throws IOException {
                wire.keep(bytes, from, len);
                out.write(bytes, from, len);
            }
        };
    }
}

/** What the server's first flight shows, read as far as it is there. */
final class Wire {
    /** In a group's place: the server wants another hello. */
    static final int RETRY = -1;
    private static final int MAX_FLIGHT = 32 << 10;
    private static final int CHANGE_CIPHER_SPEC = 20, HANDSHAKE = 22;
    private static final int SERVER_HELLO = 2, CERTIFICATE = 11, KEY_EXCHANGE = 12;
    private static final int PRE_SHARED_KEY = 41, SUPPORTED_VERSIONS = 43, KEY_SHARE = 51;

    boolean enough;
    boolean resumed;
    /** Of the key exchange; 0 where there was none. */
    int group;
    private boolean tls13;
    private boolean begun;
    private byte[] seen = new byte[4 << 10];
    private int len;

    void keep(byte[] bytes, int from, int more) {
        if (enough || more <= 0 || len + more > MAX_FLIGHT) {
            return;
        }
        if (len + more > seen.length) {
            seen = Arrays.copyOf(seen, MAX_FLIGHT);
        }
        System.arraycopy(bytes, from, seen, len, more);
        len += more;
        look();
    }

    private int number(int at, int bytes) {
        int number = 0;
        for (int next = at; next < at + bytes; next++) {
            number = number << 8 | seen[next] & 0xff;
        }
        return number;
    }

    private void look() {
        for (int at = 0; at + 5 <= len && !enough;) {
            int kind = number(at, 1);
            int end = at + 5 + number(at + 3, 2);
            if (end > len) {
                return;
            }
            if (kind == CHANGE_CIPHER_SPEC && begun) {
                // TLS 1.2: keys change before any certificate came (RFC 5246 section 7.3).
                resumed = true;
                enough = true;
            } else if (kind == HANDSHAKE) {
                messages(at + 5, end);
            }
            at = end;
        }
    }

    private void messages(int from, int end) {
        for (int at = from; at + 4 <= end && !enough;) {
            int kind = number(at, 1);
            int body = at + 4;
            int next = body + number(at + 1, 3);
            if (next > end) {
                return;
            }
            if (kind == SERVER_HELLO) {
                hello(body, next);
                enough = tls13;
                begun = true;
            } else if (kind == CERTIFICATE) {
                begun = false;
            } else if (kind == KEY_EXCHANGE && next >= body + 3 && number(body, 1) == 3) {
                // RFC 8422 section 5.4: a named curve, and which.
                group = number(body + 1, 2);
                enough = true;
            }
            at = next;
        }
    }

    private void hello(int from, int end) {
        int random = from + 34;
        if (random + 1 > end) {
            return;
        }
        for (int at = random + 1 + number(random, 1) + 3 + 2; at + 4 <= end;) {
            int kind = number(at, 2);
            int size = number(at + 2, 2);
            int value = at + 4;
            if (value + size > end) {
                return;
            }
            if (kind == SUPPORTED_VERSIONS && size == 2) {
                tls13 = number(value, 2) == 0x0304;
            } else if (kind == PRE_SHARED_KEY) {
                // RFC 8446 section 4.2.11: the server takes it.
                resumed = true;
            } else if (kind == KEY_SHARE && size >= 2) {
                // RFC 8446 section 4.2.8: a HelloRetryRequest has the group alone.
                group = size == 2 ? RETRY : number(value, 2);
            }
            at = value + size;
        }
    }
}
