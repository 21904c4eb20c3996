// Package browser tests the page of patterns/statuspage in a real browser: Debian's
// chromium. It has no code beside the tests.
//
//	EPHEMERAL_LONG=1 go test ./demo/browser
//
// Without EPHEMERAL_LONG and without chromium, the tests are skipped. Tests with axe-core are also
// skipped without npm. If EPHEMERAL_BROWSER_REQUIRED is set, a missing program is a failure. EPHEMERAL_AXE names
// a copy of axe.min.js, so that npm is not needed. With EPHEMERAL_SCREENSHOTS=$PWD/docs, they also
// write the screenshots of the documentation.
//
// The page is also tried behind nginx and Caddy, with the configurations of docs/statuspage-security.md. A proxy that is not
// installed is skipped; nginx is required if EPHEMERAL_NGINX_REQUIRED is set.
package browser
