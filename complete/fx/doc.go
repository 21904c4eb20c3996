// Package fx is the part of package complete for programs built with go.uber.org/fx. It
// has what patterns/fxmodule exports, under the names that they would have in package
// complete. It is a separate package, so that programs that import complete do not link
// fx.
package fx
