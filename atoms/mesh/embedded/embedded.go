package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	nats "github.com/nats-io/nats.go"
)

// Options configure a server. The zero value is a server that only this process uses.
//
// A port that other machines can reach must be authenticated: with Secret, or with TLS that
// requires and verifies certificates of clients. Otherwise its host must be a loopback address.
type Options struct {
	// Listen is the address, HOST:PORT, at which servers of other processes connect to this
	// one; "" means that none can. Without a host, it is all addresses of the machine.
	Listen string
	// Peers are the addresses of other servers. They may include this one, so all processes
	// can have the same list. A server that is not there is tried again every second. Servers tell each
	// other which servers they know. Peers needs Listen.
	Peers []string
	// Clients is the address, HOST:PORT, at which programs without a server connect; "" means
	// that none can. The connection of this process needs no port.
	Clients string
	// Secret is the password of servers and clients; the name of the user is [User]. Without
	// TLS, who can read the network can read it.
	Secret string
	// TLS is for both ports; nil means none. Servers show its certificates to each other, so it
	// needs Certificates, RootCAs and ClientCAs.
	TLS *tls.Config
}

// User is the name of the user whose password is [Options].Secret.
const User = "mesh"

// startTime bounds the start of a server if ctx has no end.
const startTime = 10 * time.Second

// New starts a server in this process, and connects to it without a port. The server has no
// storage and knows nothing of JetStream. Stop closes the connection and the server; it may be
// called many times. New returns an error if an option is wrong or an address is in use, and if
// the server does not start until ctx ends, or within 10 seconds. New does not wait for Peers.
func New(ctx context.Context, opts Options) (conn *nats.Conn, stop func(), err error) {
	so, err := opts.server()
	if err != nil {
		return nil, nil, err
	}
	s, err := server.NewServer(so)
	if err != nil {
		return nil, nil, fmt.Errorf("embedded: %w", err)
	}
	s.Start()
	halt := func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	left := startTime
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	if !s.ReadyForConnections(left) {
		halt()
		return nil, nil, fmt.Errorf("embedded: the server has not started: is %q or %q in use? %w", opts.Listen, opts.Clients, cmp.Or(context.Cause(ctx), errNotReady))
	}
	auth := nats.Option(func(*nats.Options) error { return nil })
	if opts.Secret != "" {
		auth = nats.UserInfo(User, opts.Secret)
	}
	if conn, err = nats.Connect("", nats.InProcessServer(s), nats.Name("mesh"), nats.MaxReconnects(-1), auth); err != nil {
		halt()
		return nil, nil, fmt.Errorf("embedded: connect: %w", err)
	}
	return conn, sync.OnceFunc(func() {
		conn.Close()
		halt()
	}), nil
}

var errNotReady = errors.New("it is not ready")

// server returns the options of the server, or an error.
func (o Options) server() (*server.Options, error) {
	so := &server.Options{ServerName: "", NoSigs: true, NoLog: true, DontListen: o.Clients == "", TLSConfig: o.TLS}
	safe := o.Secret != "" || o.TLS != nil && o.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	var err error
	if o.Secret != "" {
		so.Username, so.Password = User, o.Secret
	}
	if o.Clients != "" {
		if so.Host, so.Port, err = address("Clients", o.Clients, safe); err != nil {
			return nil, err
		}
	}
	if o.Listen == "" {
		if len(o.Peers) > 0 {
			return nil, errors.New("embedded: Options.Peers has servers, but Listen is empty")
		}
		return so, nil
	}
	c := &so.Cluster
	if c.Host, c.Port, err = address("Listen", o.Listen, safe); err != nil {
		return nil, err
	}
	c.Name, c.TLSConfig, c.Username, c.Password = "mesh", o.TLS, so.Username, so.Password
	for _, peer := range o.Peers {
		if _, _, err := net.SplitHostPort(peer); err != nil {
			return nil, fmt.Errorf("embedded: Options.Peers has %q, but needs HOST:PORT: %w", peer, err)
		}
		u := &url.URL{Scheme: "nats-route", Host: peer}
		if o.Secret != "" {
			u.User = url.UserPassword(User, o.Secret)
		}
		so.Routes = append(so.Routes, u)
	}
	return so, nil
}

// address returns the parts of an address. If the port is not safe, the host must be a loopback
// address.
func address(field, text string, safe bool) (host string, port int, err error) {
	host, name, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, fmt.Errorf("embedded: Options.%s is %q, but must be HOST:PORT: %w", field, text, err)
	}
	if port, err = strconv.Atoi(name); err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("embedded: Options.%s is %q, but the port must be from 1 to 65535", field, text)
	}
	if ip := net.ParseIP(host); !safe && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", 0, fmt.Errorf("embedded: Options.%s is %q, which other machines can reach: it needs Secret, or TLS with RequireAndVerifyClientCert", field, text)
	}
	return cmp.Or(host, "0.0.0.0"), port, nil
}
