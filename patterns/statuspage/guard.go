package statuspage

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// policy are headers of every answer. They permit scripts, styles and data of the same
// origin only, and forbid frames, caches and referrers.
var policy = map[string]string{
	"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Cache-Control":                "no-store",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// admit returns an error if a request may not see the page.
func (p *Page) admit(w http.ResponseWriter, r *http.Request) error {
	if (onLoopback(r) || fromLoopback(r)) && !p.isOurs(r.Host) {
		return failure{http.StatusForbidden, "the name of the host is not one of this page: add it to Options.Hosts"}
	}
	a := admission{failure: failure{http.StatusForbidden, "this request may not see the page"}}
	if p.opts.View(r.WithContext(context.WithValue(r.Context(), admission{}, &a))) {
		return nil
	}
	for name, value := range map[string]string{"Set-Cookie": a.cookie, "Location": a.location} {
		if value != "" {
			w.Header().Add(name, value)
		}
	}
	if a.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	return a.failure
}

// isOurs reports whether a Host header names a host of this page. A name that an attacker
// owns may resolve to a loopback address: it is refused.
func (p *Page) isOurs(hostport string) bool {
	host := hostOf(hostport)
	same := func(name string) bool { return strings.EqualFold(name, host) }
	_, err := netip.ParseAddr(host)
	return err == nil || same("localhost") || slices.ContainsFunc(p.opts.Hosts, same)
}

// Loopback is an [Options.View] for requests from a loopback address without a header of a
// proxy, such as X-Forwarded-For. It does not prove that a person at this machine asks: a
// proxy or tunnel on this machine makes everybody a loopback peer, and need not add a header.
// It also lets in all users and programs of the machine.
func Loopback(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return fromLoopback(r)
}

func fromLoopback(r *http.Request) bool { return isLoopback(r.RemoteAddr) }

func onLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(at.String())
}

func isLoopback(hostport string) bool {
	ip, err := netip.ParseAddr(hostOf(hostport))
	return err == nil && ip.Unmap().IsLoopback()
}

// hostOf cuts off the port and the brackets of an IPv6 address.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}
