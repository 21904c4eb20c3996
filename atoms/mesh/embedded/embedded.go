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
	// one; "" means that none can. Without a host, it is all IPv4 addresses of the machine.
	Listen string
	// Peers are the addresses of other servers. They may include this one, so all processes
	// can have the same list. A server that is not there is tried again every second. Servers tell each
	// other which servers they know. Peers needs Listen.
	Peers []string
	// Clients is the address, HOST:PORT, at which programs without a server connect; "" means
	// that none can. The connection of this process needs no port. With Listen, nats-server
	// always has such a port: it is one of a loopback address then.
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

// A Server is a NATS server in this process, with a connection to it. Make one with [New], and
// close it. All methods are safe for concurrent use. It has goroutines until Close returns.
type Server struct {
	server *server.Server
	conn   *nats.Conn
}

// New starts a server in this process, and connects to it without a port. The server stores
// nothing. New returns an error if an option is wrong or an address is in use, and if
// the server does not start until ctx ends, or within 10 seconds. New does not wait for Peers.
func New(ctx context.Context, opts Options) (*Server, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	s := new(Server)
	if s.server, err = server.NewServer(opts.server()); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s.server.Start()
	left := startTime
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	if !s.server.ReadyForConnections(left) {
		s.Close()
		return nil, fmt.Errorf("embedded: the server does not listen at Listen %q and Clients %q", opts.Listen, opts.Clients)
	}
	options := []nats.Option{nats.InProcessServer(s.server), nats.Name("mesh"), nats.MaxReconnects(-1)}
	if opts.Secret != "" {
		options = append(options, nats.UserInfo(User, opts.Secret))
	}
	if s.conn, err = nats.Connect("", options...); err != nil {
		s.Close()
		return nil, fmt.Errorf("embedded: connect: %w", err)
	}
	return s, nil
}

// Conn is the connection of this process. Close closes it.
func (s *Server) Conn() *nats.Conn { return s.conn }

// Close closes the connection and the server, and waits for the goroutines of both. Close the
// mesh first. It returns nil.
func (s *Server) Close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}

// resolved returns the options, or an error.
func (o Options) resolved() (Options, error) {
	safe := o.Secret != "" || o.TLS != nil && o.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	for field, at := range map[string]string{"Listen": o.Listen, "Clients": o.Clients} {
		if at == "" {
			continue
		}
		host, port, err := parts(at)
		if err != nil {
			return o, fmt.Errorf("embedded: Options.%s is %q, but must be HOST:PORT, with a port from 1 to 65535", field, at)
		}
		if ip := net.ParseIP(host); !safe && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return o, fmt.Errorf("embedded: Options.%s is %q, which other machines can reach: it needs Secret, or TLS with RequireAndVerifyClientCert", field, at)
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))) // the server does not say that an address is in use
		if err != nil {
			return o, fmt.Errorf("embedded: Options.%s: %w", field, err)
		}
		l.Close()
	}
	for _, peer := range o.Peers {
		if _, _, err := parts(peer); err != nil {
			return o, fmt.Errorf("embedded: Options.Peers has %q, but must have HOST:PORT, with ports from 1 to 65535", peer)
		}
	}
	if len(o.Peers) > 0 && o.Listen == "" {
		return o, errors.New("embedded: Options.Peers has servers, but Listen is empty")
	}
	return o, nil
}

// parts returns the host and the port of an address.
func parts(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if number == 0 {
		err = strconv.ErrRange
	}
	return cmp.Or(host, "0.0.0.0"), int(number), err
}

// server returns the options of the server.
func (o *Options) server() *server.Options {
	so := &server.Options{NoSigs: true, NoLog: true, TLSConfig: o.TLS}
	if o.Secret != "" {
		so.Username, so.Password = User, o.Secret
	}
	switch {
	case o.Clients != "":
		so.Host, so.Port, _ = parts(o.Clients)
	case o.Listen != "":
		so.Host, so.Port = "127.0.0.1", server.RANDOM_PORT // without it, nats-server starts no routes
	default:
		so.DontListen = true
	}
	if o.Listen == "" {
		return so
	}
	c := &so.Cluster
	c.Host, c.Port, _ = parts(o.Listen)
	c.Name, c.TLSConfig, c.Username, c.Password = "mesh", o.TLS, so.Username, so.Password
	for _, peer := range o.Peers {
		u := &url.URL{Scheme: "nats-route", Host: peer}
		if o.Secret != "" {
			u.User = url.UserPassword(User, o.Secret)
		}
		so.Routes = append(so.Routes, u)
	}
	return so
}
