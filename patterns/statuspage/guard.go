package statuspage

import (
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
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
func (p *Page) admit(r *http.Request) error {
	if (onLoopback(r) || fromLoopback(r)) && !p.isOurs(r.Host) {
		return failure{code: http.StatusForbidden, text: "the name of the host is not one of this page: add it to Options.Hosts"}
	}
	f := failure{code: http.StatusForbidden, text: "this request may not see the page"}
	if !p.opts.View(r.WithContext(context.WithValue(r.Context(), admission{}, &f))) {
		return f
	}
	return nil
}

// isOurs reports whether a Host header names a host of this page. It refuses other names,
// because an attacker's name may resolve to a loopback address.
func (p *Page) isOurs(hostport string) bool {
	host := hostOf(hostport)
	same := func(name string) bool { return strings.EqualFold(name, host) }
	_, err := netip.ParseAddr(host)
	return err == nil || same("localhost") || slices.ContainsFunc(p.opts.Hosts, same)
}

// Loopback is an [Options.View] for requests from a loopback address without a header of a
// proxy, such as X-Forwarded-For. It does not prove that a person at this machine asks: behind a
// proxy or tunnel on this machine, every request comes from a loopback address, and may have no such header.
// It also lets in all users and programs of the machine.
func Loopback(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return fromLoopback(r)
}

// Token returns an [Options.View] for people who know a secret, such as the text of
// crypto/rand.Text. A secret of less than 16 bytes is an error.
//
// A script sends the header "Authorization: Bearer SECRET". A person opens the page with
// ?token=SECRET once: the answer sets a cookie and redirects to the same address without the
// token. The cookie does not contain the secret, and the browser forgets it at its end. A
// request without header and cookie gets status 401. Another View may call the returned
// function.
func Token(secret string) (func(*http.Request) bool, error) {
	if len(secret) < 16 {
		return nil, fmt.Errorf("statuspage: Token needs a secret of at least 16 bytes, and this one has %d", len(secret))
	}
	sum := sha512.Sum512([]byte(secret))
	// Browsers send a cookie to all ports of a host. So the cookie's name depends on the
	// token.
	cookie := http.Cookie{Name: fmt.Sprintf("statuspage-%x", sum[:8]), Value: fmt.Sprintf("%x", sum[32:]), HttpOnly: true, SameSite: http.SameSiteLaxMode}
	is := func(given, wanted string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(wanted)) == 1 }
	return func(r *http.Request) bool {
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given, err := r.Cookie(cookie.Name)
		isKnown := strings.EqualFold(scheme, "Bearer") && is(bearer, secret) || err == nil && is(given.Value, cookie.Value)
		f, asked := r.Context().Value(admission{}).(*failure) // not if another handler uses this View
		switch values := r.URL.Query(); {
		case asked && isReading(r) && is(values.Get("token"), secret): // also if it is known: the secret leaves the address
			values.Del("token")
			_, last := path.Split(r.URL.Path)
			to := url.URL{Path: "./" + last, RawQuery: values.Encode()} // relative, because the page may have a prefix
			given := cookie
			given.Secure = r.TLS != nil
			*f = failure{http.StatusSeeOther, "go on without the token", http.Header{"Set-Cookie": {given.String()}, "Location": {to.String()}}}
			return false
		case asked && !isKnown:
			*f = failure{http.StatusUnauthorized, "this request has no valid token: open the link with ?token= again, or send the header Authorization: Bearer", http.Header{"Www-Authenticate": {"Bearer"}}}
		}
		return isKnown
	}, nil
}

// An admission is a key in the context of a request. Its value is the failure, which a View
// of this package may change.
type admission struct{}

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
