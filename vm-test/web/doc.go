// Package web holds the test of pxed's page in a real browser: headless Chromium
// against a running pxed with a real ledger, and machines that are played by
// requests. It writes screenshots to out/screenshots.
//
// CHROMIUM names the browser, default /usr/bin/chromium (Debian package chromium).
package web
