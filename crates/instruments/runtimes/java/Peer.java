// Java's JSSE as a server or as a client that makes load. Wiretax builds and runs it.
//
// Standard input: the job as key=value lines and an empty line; then at the server "restart" (answered by
// measuring) and "count" (answered by counts), at the client "begin" (after measuring; answered by counts
// when the time is over), and "stop", or its end, which ends the program. Standard output: one JSON object
// a line. JSSE tells neither the group nor what was resumed: Wire reads both off the first flight.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public final class Peer {
    /** What one read may take, in milliseconds. */
    static final int PATIENCE = 30_000;
    static final int MAX_REQUEST = 8 << 10;
    static final int MAX_BODY = 16 << 20;
    /** Bits of enum wt_function: TLS 1.0 to 1.3. */
    static final int FUNCTIONS = 0b1111;
    static final int POST_QUANTUM = 1 << 7;
    static final int HYBRID = 0x11ec;

    static final Map<String, String> job = new HashMap<>();

    static final AtomicLong done = new AtomicLong();
    static final AtomicLong failed = new AtomicLong();
    static final AtomicLong resumed = new AtomicLong();
    static String failure = "";
    static long startedNs;
    static long cpuNs;

    static synchronized void fail(Exception why) {
        failed.incrementAndGet();
        if (failure.isEmpty()) {
            failure = why.toString();
        }
    }

    static synchronized void restart() {
        done.set(0);
        failed.set(0);
        resumed.set(0);
        failure = "";
        cpuNs = cpu();
        startedNs = System.nanoTime();
    }

    static synchronized void sayCounts() {
        say("{\"event\":\"counts\",\"done\":" + done + ",\"failed\":" + failed + ",\"failure\":" + quoted(failure)
            + ",\"resumed\":" + resumed + ",\"misreported\":0,\"cpu_ns\":" + (cpu() - cpuNs)
            + ",\"wall_ns\":" + (System.nanoTime() - startedNs) + "}");
    }

    /** Whether the kernel tells each thread's CPU time in ns; Java itself tells it in ticks of 10 ms. */
    static final boolean BY_THREAD = Files.isReadable(Path.of("/proc/self/schedstat"));

    /** CPU time of the process in ns, garbage collection and compilation included. */
    static long cpu() {
        var system = ManagementFactory.getOperatingSystemMXBean();
        if (!BY_THREAD && system instanceof com.sun.management.OperatingSystemMXBean known) {
            return known.getProcessCpuTime();
        }
        long sum = 0;
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path thread : threads) {
                String line = Files.readString(thread.resolve("schedstat"));
                sum += Long.parseLong(line.substring(0, line.indexOf(' ')));
            }
        } catch (IOException | RuntimeException unknown) {
            throw new IllegalStateException("this machine does not tell its CPU time", unknown);
        }
        return sum;
    }

    static String quoted(String text) {
        var out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    static void say(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }

    static void quit(String event, String why) {
        say("{\"event\":\"" + event + "\",\"why\":" + quoted(why) + "}");
        System.exit(0);
    }

    static int number(String key) {
        return Integer.parseInt(job.get(key));
    }

    static boolean has(String key) {
        return "1".equals(job.get(key));
    }

    static String version() {
        return number("version") == 0x0304 ? "TLSv1.3" : "TLSv1.2";
    }

    static String cipher() {
        switch (number("cipher")) {
            case 0x1301: return "TLS_AES_128_GCM_SHA256";
            case 0x1302: return "TLS_AES_256_GCM_SHA384";
            case 0x1303: return "TLS_CHACHA20_POLY1305_SHA256";
            case 0xc02b: return "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
            case 0xc02c: return "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
            case 0xcca9: return "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
            case 0xc02f: return "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
            case 0xc030: return "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
            case 0xcca8: return "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
            default: return "";
        }
    }

    static String group(int number) {
        switch (number) {
            case 23: return "secp256r1";
            case 29: return "x25519";
            case HYBRID: return "X25519MLKEM768";
            default: return "";
        }
    }

    /** JSSE reads these properties once, when its classes are loaded. */
    static void pin() {
        String groups = group(number("group"));
        if (groups.isEmpty()) {
            quit("unsupported", "group " + number("group") + " is not one of those pinned here");
        }
        if (number("group") == HYBRID && Runtime.version().feature() < 27) {
            quit("unsupported", "Java " + Runtime.version() + " lacks X25519MLKEM768, which came with Java 27");
        }
        if (number("group") == HYBRID && number("version") != 0x0304) {
            quit("unsupported", "the hybrid group came with TLS 1.3");
        }
        // RFC 8422 §5.1: in TLS 1.2 the groups are those of the server's certificate too.
        int second = number("certificate_group");
        if (number("version") == 0x0303 && second != 0 && second != number("group")) {
            groups += "," + group(second);
        }
        System.setProperty("jdk.tls.namedGroups", groups);
        String scheme = number("signature") == 0x0403 ? "ecdsa_secp256r1_sha256" : "rsa_pss_rsae_sha256";
        System.setProperty("jdk.tls.server.SignatureSchemes", scheme);
        // The chain's own signatures are under the same list.
        System.setProperty("jdk.tls.client.SignatureSchemes",
            scheme + ",rsa_pkcs1_sha256" + (scheme.startsWith("ecdsa") ? "" : ",ecdsa_secp256r1_sha256"));
        if (!has("tickets")) {
            System.setProperty("jdk.tls.server.enableSessionTicketExtension", "false");
            System.setProperty("jdk.tls.server.newSessionTicketCount", "0");
        }
    }

    static Certificate[] certificates(String pem) throws Exception {
        Collection<? extends Certificate> found = CertificateFactory.getInstance("X.509")
            .generateCertificates(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)));
        if (found.isEmpty()) {
            throw new IOException("no certificate in the PEM text");
        }
        return found.toArray(new Certificate[0]);
    }

    static SSLContext serverContext() throws Exception {
        Certificate[] chain = certificates(job.get("chain"));
        String body = job.get("key").replaceAll("-----[^-]*-----", "").replaceAll("\\s", "");
        PrivateKey key = KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm())
            .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(body)));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("leaf", key, new char[0], chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }

    static SSLContext clientContext() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        Certificate[] roots = certificates(job.get("roots"));
        for (int at = 0; at < roots.length; at++) {
            store.setCertificateEntry("root" + at, roots[at]);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        context.getClientSessionContext().setSessionCacheSize(2);
        return context;
    }

    static SSLParameters parameters() {
        return new SSLParameters(new String[] {cipher()}, new String[] {version()});
    }

    static void check(SSLSession session, Wire wire) throws IOException {
        if (!session.getProtocol().equals(version()) || !session.getCipherSuite().equals(cipher())) {
            throw new IOException("negotiated " + session.getProtocol() + " " + session.getCipherSuite());
        }
        if (!wire.enough) {
            throw new IOException("the wire shows no first flight of a server");
        }
        if (wire.group == Wire.RETRY) {
            throw new IOException("a HelloRetryRequest came first");
        }
        boolean resumed12 = wire.resumed && number("version") == 0x0303;
        if (wire.group != number("group") && !resumed12) {
            throw new IOException("negotiated group " + wire.group + " in place of " + number("group"));
        }
    }

    static void serve(BufferedReader input) throws Exception {
        SSLContext context = serverContext();
        if (number("body") > MAX_BODY) {
            throw new IOException("the body is too large");
        }
        byte[] head = ("HTTP/1.1 200 OK\r\nContent-Length: " + number("body") + "\r\nConnection: close\r\n\r\n")
            .getBytes(StandardCharsets.US_ASCII);
        byte[] response = Arrays.copyOf(head, head.length + number("body"));
        Arrays.fill(response, head.length, response.length, (byte) 'x');
        ServerSocket listener = new ServerSocket() {
            @Override
            public Socket accept() throws IOException {
                Tap tap = new Tap(true);
                implAccept(tap);
                return tap;
            }
        };
        listener.bind(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), 0), 1024);
        restart();
        for (int at = 0; at < number("threads"); at++) {
            worker(() -> {
                try (Tap raw = (Tap) listener.accept()) {
                    try {
                        answer(context, raw, response);
                        end(raw.wire);
                    } catch (IOException | RuntimeException error) {
                        fail(error);
                    }
                } catch (IOException error) {
                    fail(error);
                    Thread.yield();
                }
            });
        }
        say("{\"event\":\"listening\",\"port\":" + listener.getLocalPort() + "}");
        for (String line; (line = input.readLine()) != null && !line.equals("stop");) {
            if (line.equals("count")) {
                sayCounts();
            } else if (line.equals("restart")) {
                restart();
                say("{\"event\":\"measuring\"}");
            }
        }
    }

    /** A connection that ended well. */
    static void end(Wire wire) {
        if (wire.resumed) {
            resumed.incrementAndGet();
        }
        done.incrementAndGet();
    }

    static void answer(SSLContext context, Tap raw, byte[] response) throws IOException {
        raw.setSoTimeout(PATIENCE);
        raw.setTcpNoDelay(true);
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(raw, null, true)) {
            socket.setSSLParameters(parameters());
            socket.setUseClientMode(false);
            byte[] request = new byte[MAX_REQUEST];
            InputStream in = socket.getInputStream();
            for (int len = 0; !endsRequest(request, len);) {
                int got = len < request.length ? in.read(request, len, request.length - len) : 0;
                if (got <= 0) {
                    // A failed handshake shows itself here as SSL_NULL_WITH_NULL_NULL.
                    throw new IOException("no whole request, " + socket.getSession().getCipherSuite());
                }
                len += got;
            }
            check(socket.getSession(), raw.wire);
            socket.getOutputStream().write(response);
        }
    }

    static boolean endsRequest(byte[] bytes, int len) {
        return len >= 4 && bytes[len - 4] == '\r' && bytes[len - 3] == '\n' && bytes[len - 2] == '\r'
            && bytes[len - 1] == '\n';
    }

    static volatile boolean over;

    static Thread worker(Runnable work) {
        Thread thread = new Thread(() -> {
            while (!over) {
                work.run();
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void connect(BufferedReader input) throws Exception {
        String[] address = job.get("address").split(":");
        InetSocketAddress to = new InetSocketAddress(InetAddress.getByName(address[0]), Integer.parseInt(address[1]));
        byte[] request = ("GET / HTTP/1.1\r\nHost: " + job.get("name") + "\r\nConnection: close\r\n\r\n")
            .getBytes(StandardCharsets.US_ASCII);
        SSLContext[] contexts = new SSLContext[number("at_once")];
        for (int at = 0; at < contexts.length; at++) {
            // One a worker: a ticket is used by whom it was given to.
            contexts[at] = clientContext();
        }
        restart();
        CountDownLatch primed = new CountDownLatch(contexts.length);
        List<Thread> workers = new ArrayList<>();
        for (SSLContext context : contexts) {
            AtomicBoolean first = new AtomicBoolean(true);
            workers.add(worker(() -> {
                try (Tap raw = new Tap(false)) {
                    raw.setTcpNoDelay(true);
                    raw.setSoTimeout(PATIENCE);
                    raw.connect(to, PATIENCE);
                    once(context, raw, request);
                    if (!has("resume")) {
                        forget(context.getClientSessionContext());
                    }
                    end(raw.wire);
                } catch (IOException | RuntimeException error) {
                    fail(error);
                    try {
                        Thread.sleep(1); // a dead server is not to be hammered
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    }
                }
                if (first.getAndSet(false)) {
                    primed.countDown();
                }
            }));
        }
        CountDownLatch begin = new CountDownLatch(1);
        Thread end = new Thread(() -> {
            try {
                for (String line; (line = input.readLine()) != null && !line.equals("stop");) {
                    if (line.equals("begin")) {
                        begin.countDown();
                    }
                }
            } catch (IOException error) {
                fail(error);
            }
            System.exit(0);
        });
        end.setDaemon(true);
        end.start();
        while (done.get() + failed.get() < number("warm")) {
            Thread.sleep(1);
        }
        primed.await(); // tickets are there
        say("{\"event\":\"measuring\"}");
        begin.await(); // the server's window has begun
        restart();
        Thread.sleep(number("milliseconds"));
        while (done.get() + failed.get() < number("connections")) {
            Thread.sleep(1);
        }
        sayCounts();
        over = true;
        for (Thread worker : workers) {
            worker.join(PATIENCE);
        }
    }

    /** JSSE resumes whatever it can: a full handshake is one without anything to resume. */
    static void forget(SSLSessionContext sessions) {
        for (byte[] id : Collections.list(sessions.getIds())) {
            SSLSession session = sessions.getSession(id);
            if (session != null) {
                session.invalidate();
            }
        }
    }

    static void once(SSLContext context, Tap raw, byte[] request) throws IOException {
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory()
            .createSocket(raw, job.get("name"), raw.getPort(), true)) {
            SSLParameters parameters = parameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            parameters.setServerNames(List.of(new SNIHostName(job.get("name"))));
            socket.setSSLParameters(parameters);
            socket.startHandshake();
            check(socket.getSession(), raw.wire);
            socket.getOutputStream().write(request);
            byte[] bytes = new byte[16 << 10];
            InputStream in = socket.getInputStream();
            byte[] start = in.readNBytes(13);
            // HTTP/1.1 200, or of 1.0 (RFC 9112 section 4).
            if (!new String(start, StandardCharsets.US_ASCII).endsWith(" 200 ")) {
                throw new IOException("the answer is not 200");
            }
            // Ends by close_notify only; the ticket comes on the way.
            for (long len = 0; in.read(bytes) >= 0; len += bytes.length) {
                if (len > 2L * MAX_BODY) {
                    throw new IOException("the answer is too long");
                }
            }
        }
    }

    static void describe() {
        int functions = FUNCTIONS | (Runtime.version().feature() >= 27 ? POST_QUANTUM : 0);
        String flags = System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version") + " "
            + String.join(" ", ManagementFactory.getRuntimeMXBean().getInputArguments());
        say("{\"event\":\"described\",\"library\":\"Java JSSE\",\"version\":" + quoted(Runtime.version().toString())
            + ",\"build_flags\":" + quoted(flags.trim()) + ",\"cpu_features\":\"\",\"functions\":" + functions
            + ",\"notes\":["
            + quoted("JSSE does not tell the group, nor whether a session was resumed: both are read off the wire")
            + "," + quoted("a TLS 1.3 server's tickets cannot be switched off in every Java: without tickets they name"
                + " an entry of the server's cache") + "]}");
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null && !line.isEmpty();) {
            int at = line.indexOf('=');
            job.put(line.substring(0, Math.max(at, 0)), line.substring(at + 1).replace("\\n", "\n"));
        }
        try {
            describe();
            if ("describe".equals(job.get("mode"))) {
                System.exit(0);
            }
            pin();
            List<String> known = Arrays.asList(SSLContext.getDefault().getSupportedSSLParameters().getCipherSuites());
            if (!known.contains(cipher())) {
                quit("unsupported", "JSSE lacks the cipher suite");
            }
            if ("serve".equals(job.get("mode"))) {
                serve(input);
            } else {
                connect(input);
            }
        } catch (Exception error) {
            quit("failed", error.toString());
        }
        System.exit(0);
    }
}
