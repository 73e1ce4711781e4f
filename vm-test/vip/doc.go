// Package vip holds the test that the API's virtual address moves: three hosts on a
// bridge, each with a real keepalived under the configuration that bootstrap writes, and
// with a stand-in for its API server. It tells how long the address takes when the
// holder's API server dies and when the holder loses its power, and sees that nothing
// moves when either comes back.
package vip
