// Go's crypto/tls as a server or as a client that makes load. Wiretax builds and runs it.
//
// Standard input: the job as key=value lines and an empty line; then at the server "restart" (answered by
// measuring) and "count" (answered by counts), at the client "begin" (after measuring; answered by counts
// when the time is over), and "stop", or its end, which ends the program. Standard output: one JSON object
// a line. What was resumed is read off the server's first flight, and crypto/tls is asked too.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What one connection may take.
const patience = 30 * time.Second

// Bits of enum wt_function.
const (
	tls10        = 1 << 0
	tls11        = 1 << 1
	tls12        = 1 << 2
	tls13        = 1 << 3
	quicTLS      = 1 << 5
	postQuantum  = 1 << 7
	ech          = 1 << 10 // Encrypted Client Hello
	hybrid       = 0x11ec
	maxLine      = 1 << 20
	maxRequest   = 8 << 10
	maxBodyBytes = 16 << 20
	maxFlight    = 32 << 10
)

type counts struct {
	done, failed, resumed atomic.Uint64
	// Connections of which crypto/tls says other than the wire shows.
	misreported    atomic.Uint64
	mutex   sync.Mutex
	failure string
	started time.Time
	cpu     time.Duration
}

func (c *counts) fail(err error) {
	c.failed.Add(1)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.failure == "" {
		c.failure = err.Error()
	}
}

// A connection that ended well, with what its wire showed and what crypto/tls says of it.
func (c *counts) end(shown flight, state tls.ConnectionState) {
	if shown.resumed {
		c.resumed.Add(1)
	}
	if shown.resumed != state.DidResume {
		c.misreported.Add(1)
	}
	c.done.Add(1)
}

func (c *counts) restart() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.done.Store(0)
	c.failed.Store(0)
	c.resumed.Store(0)
	c.misreported.Store(0)
	c.failure = ""
	c.cpu = cpu()
	c.started = time.Now()
}

func (c *counts) say() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	say(map[string]any{
		"event": "counts", "done": c.done.Load(), "failed": c.failed.Load(), "failure": c.failure,
		"resumed": c.resumed.Load(), "misreported": c.misreported.Load(),
		"cpu_ns": int64(cpu() - c.cpu), "wall_ns": time.Since(c.started).Nanoseconds(),
	})
}

// CPU time of the process, garbage collection included.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		quit("failed", "getrusage: "+err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var output sync.Mutex

func say(message map[string]any) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

func quit(event, why string) {
	say(map[string]any{"event": event, "why": why})
	os.Exit(0)
}

type job map[string]string

func (j job) number(key string) int {
	number, err := strconv.Atoi(j[key])
	if err != nil || number < 0 {
		quit("failed", fmt.Sprintf("the job's %s is not a number: %q", key, j[key]))
	}
	return number
}

func (j job) has(key string) bool { return j[key] == "1" }

func readJob(input *bufio.Scanner) job {
	j := job{}
	for input.Scan() && input.Text() != "" {
		key, value, _ := strings.Cut(input.Text(), "=")
		j[key] = strings.ReplaceAll(value, `\n`, "\n")
	}
	return j
}

// The version after "go1.", or 0.
func minor() int {
	text := strings.TrimPrefix(runtime.Version(), "go1.")
	digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if digits >= 0 {
		text = text[:digits]
	}
	number, _ := strconv.Atoi(text)
	return number
}

func describe() {
	functions := tls10 | tls11 | tls12 | tls13
	if minor() >= 21 {
		functions |= quicTLS
	}
	if minor() >= 23 {
		functions |= ech
	}
	if minor() >= 24 {
		functions |= postQuantum
	}
	var flags []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if !strings.HasPrefix(setting.Key, "vcs") {
				flags = append(flags, setting.Key+"="+setting.Value)
			}
		}
	}
	say(map[string]any{
		"event": "described", "library": "Go crypto/tls", "version": runtime.Version(),
		"build_flags": strings.Join(flags, " "), "cpu_features": "", "functions": functions,
		"notes": []string{
			"the signature scheme follows from the certificate's key: crypto/tls cannot pin it",
			"the cipher suite of TLS 1.3 is crypto/tls's choice: a connection with another than the asked one fails here",
		},
	})
}

func config(j job) *tls.Config {
	version, cipher, group := uint16(j.number("version")), uint16(j.number("cipher")), j.number("group")
	known := false
	for _, suite := range tls.CipherSuites() {
		for _, one := range suite.SupportedVersions {
			known = known || suite.ID == cipher && one == version
		}
	}
	if !known {
		quit("unsupported", "crypto/tls lacks the cipher suite in this version of TLS")
	}
	switch {
	case group == hybrid && minor() < 24:
		quit("unsupported", runtime.Version()+" lacks X25519MLKEM768, which came with go1.24")
	case group == hybrid && version == tls.VersionTLS12:
		quit("unsupported", "the hybrid group came with TLS 1.3")
	case group != hybrid && group != int(tls.X25519) && group != int(tls.CurveP256):
		quit("unsupported", fmt.Sprintf("group %d is not one of those pinned here", group))
	}
	c := &tls.Config{
		MinVersion: version, MaxVersion: version,
		CipherSuites:           []uint16{cipher},
		CurvePreferences:       []tls.CurveID{tls.CurveID(group)},
		SessionTicketsDisabled: !j.has("tickets"),
	}
	// RFC 8422 §5.1: in TLS 1.2 a client's groups are those of the server's certificate too.
	second := j.number("certificate_group")
	if j["mode"] == "connect" && version == tls.VersionTLS12 && second != 0 && second != group {
		c.CurvePreferences = append(c.CurvePreferences, tls.CurveID(second))
	}
	return c
}

// Whether what came of the handshake is what was asked for.
func (t *tap) check(j job, state tls.ConnectionState) error {
	if want := uint16(j.number("version")); state.Version != want {
		return fmt.Errorf("negotiated %s", tls.VersionName(state.Version))
	}
	if want := uint16(j.number("cipher")); state.CipherSuite != want {
		return fmt.Errorf("negotiated %s in place of %s", tls.CipherSuiteName(state.CipherSuite), tls.CipherSuiteName(want))
	}
	if !t.enough {
		return errors.New("the wire shows no first flight of a server")
	}
	want, resumed12 := j.number("group"), t.shown.resumed && state.Version == tls.VersionTLS12
	switch {
	case t.shown.group == retry:
		return errors.New("a HelloRetryRequest came first")
	case t.shown.group != want && !resumed12:
		return fmt.Errorf("negotiated group %d in place of %d", t.shown.group, want)
	}
	return nil
}

func serve(j job, input *bufio.Scanner) {
	c := config(j)
	identity, err := tls.X509KeyPair([]byte(j["chain"]), []byte(j["key"]))
	if err != nil {
		quit("failed", "the server's identity: "+err.Error())
	}
	c.Certificates = []tls.Certificate{identity}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		quit("failed", err.Error())
	}
	body := j.number("body")
	if body > maxBodyBytes {
		quit("failed", "the body is too large")
	}
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", body)
	response := append([]byte(head), bytes.Repeat([]byte("x"), body)...)
	total := &counts{}
	total.restart()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				total.fail(err)
				time.Sleep(time.Millisecond) // out of descriptors, most likely
				continue
			}
			go func() {
				defer conn.Close()
				wire := &tap{Conn: conn, outgoing: true}
				state, err := answer(wire, c, response)
				if err == nil {
					err = wire.check(j, state)
				}
				if err != nil {
					total.fail(err)
					return
				}
				total.end(wire.shown, state)
			}()
		}
	}()
	say(map[string]any{"event": "listening", "port": listener.Addr().(*net.TCPAddr).Port})
	for input.Scan() {
		switch input.Text() {
		case "count":
			total.say()
		case "restart":
			total.restart()
			say(map[string]any{"event": "measuring"})
		case "stop":
			return
		}
	}
}

func answer(raw *tap, c *tls.Config, response []byte) (tls.ConnectionState, error) {
	raw.SetDeadline(time.Now().Add(patience))
	conn := tls.Server(raw, c)
	request := make([]byte, 0, 512)
	for !bytes.Contains(request, []byte("\r\n\r\n")) {
		if len(request) == cap(request) {
			if cap(request) >= maxRequest {
				return conn.ConnectionState(), errors.New("the request is too long")
			}
			request = append(make([]byte, 0, 2*cap(request)), request...)
		}
		got, err := conn.Read(request[len(request):cap(request)])
		request = request[:len(request)+got]
		if err != nil && got == 0 {
			return conn.ConnectionState(), fmt.Errorf("before the request's end: %w", err)
		}
	}
	if _, err := conn.Write(response); err != nil {
		return conn.ConnectionState(), err
	}
	return conn.ConnectionState(), conn.Close()
}

// Takes tickets, as clients do, and never gives one back.
type forgetful struct{}

func (forgetful) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (forgetful) Put(string, *tls.ClientSessionState)        {}

func connect(j job, input *bufio.Scanner) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(j["roots"])) {
		quit("failed", "no certificate among the client's roots")
	}
	base := config(j)
	base.RootCAs = roots
	base.ServerName = j["name"]
	request := []byte("GET / HTTP/1.1\r\nHost: " + j["name"] + "\r\nConnection: close\r\n\r\n")
	total := &counts{}
	total.restart()
	var stop atomic.Bool
	var workers, primed sync.WaitGroup
	for range make([]struct{}, j.number("at_once")) {
		c := base.Clone()
		if j.has("resume") {
			// One cache a worker: a ticket is used by whom it was given to.
			c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		} else {
			c.ClientSessionCache = forgetful{}
		}
		workers.Add(1)
		primed.Add(1)
		go func() {
			defer workers.Done()
			first := primed.Done
			for !stop.Load() {
				wire, state, err := once(j["address"], c, request)
				if err == nil {
					err = wire.check(j, state)
				}
				first()
				first = func() {}
				if err != nil {
					total.fail(err)
					time.Sleep(time.Millisecond) // a dead server is not to be hammered
					continue
				}
				total.end(wire.shown, state)
			}
		}()
	}
	begin := make(chan struct{}, 1)
	go func() {
		for input.Scan() && input.Text() != "stop" {
			if input.Text() == "begin" {
				begin <- struct{}{}
			}
		}
		os.Exit(0)
	}()
	for enough := uint64(j.number("warm")); total.done.Load()+total.failed.Load() < enough; {
		time.Sleep(time.Millisecond)
	}
	primed.Wait() // tickets are there
	say(map[string]any{"event": "measuring"})
	<-begin // the server's window has begun
	total.restart()
	time.Sleep(time.Duration(j.number("milliseconds")) * time.Millisecond)
	for enough := uint64(j.number("connections")); total.done.Load()+total.failed.Load() < enough; {
		time.Sleep(time.Millisecond)
	}
	total.say()
	stop.Store(true)
	workers.Wait()
}

func once(address string, c *tls.Config, request []byte) (*tap, tls.ConnectionState, error) {
	raw, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, tls.ConnectionState{}, err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(patience))
	wire := &tap{Conn: raw}
	conn := tls.Client(wire, c)
	if _, err := conn.Write(request); err != nil {
		return wire, conn.ConnectionState(), err
	}
	// Ends by close_notify only; the ticket comes on the way.
	response, err := io.ReadAll(io.LimitReader(conn, maxBodyBytes+maxRequest))
	if err != nil {
		return wire, conn.ConnectionState(), err
	}
	// HTTP/1.1 200, or of 1.0 (RFC 9112 §4).
	if status := []byte(" 200 "); len(response) < 13 || !bytes.Equal(response[8:13], status) {
		return wire, conn.ConnectionState(), errors.New("the answer is not 200")
	}
	state := conn.ConnectionState()
	// The server has ended already: nobody waits for the client's end.
	conn.Close()
	return wire, state, nil
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, maxLine)
	j := readJob(input)
	if threads := j.number("threads"); threads > 0 {
		runtime.GOMAXPROCS(threads)
	}
	describe()
	switch j["mode"] {
	case "describe":
	case "serve":
		serve(j, input)
	case "connect":
		connect(j, input)
	default:
		quit("failed", "unknown mode "+strconv.Quote(j["mode"]))
	}
}
