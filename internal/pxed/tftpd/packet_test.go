package tftpd

import (
	"reflect"
	"testing"
	"time"
)

func TestNegotiate(t *testing.T) {
	for _, c := range []struct {
		options []string
		want    terms
	}{
		{nil, terms{block: 512, window: 1, timeout: time.Second}},
		{[]string{"BLKSIZE", "1468", "tsize", "0", "windowsize", "4", "timeout", "3"},
			terms{1468, 4, 3 * time.Second, []option{{"blksize", "1468"}, {"tsize", "9000"}, {"windowsize", "4"}, {"timeout", "3"}}}},
		{[]string{"blksize", "65464"}, terms{1468, 1, time.Second, []option{{"blksize", "1468"}}}},
		{[]string{"blksize", "8"}, terms{8, 1, time.Second, []option{{"blksize", "8"}}}},
		{[]string{"blksize", "7", "windowsize", "0", "timeout", "256", "tsize", "-1", "rollover", "0", "blksize2", "x"}, terms{block: 512, window: 1, timeout: time.Second}},
		{[]string{"windowsize", "65535"}, terms{512, 64, time.Second, []option{{"windowsize", "64"}}}},
		{[]string{"blksize", "600", "blksize", "700"}, terms{600, 1, time.Second, []option{{"blksize", "600"}}}},
		{[]string{"blksize"}, terms{block: 512, window: 1, timeout: time.Second}},
	} {
		r, err := parseRequest([]byte(rrq("f", c.options...)))
		if err != nil {
			t.Fatal(err)
		}
		if got := negotiate(r, 9000, 1500); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.options, got, c.want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(rrq("netboot/ipxe/snponly.efi", "tsize", "0", "blksize", "1468", "windowsize", "4")))
	f.Add([]byte("\x00\x02name\x00octet\x00"))
	f.Add([]byte("\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseAnswer(b)
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		got := negotiate(r, len(b), 1500)
		if got.block < leastBlock || got.block > 1468 || got.window < 1 || got.window > mostWindow || got.timeout < time.Second {
			t.Errorf("%q: %+v", b, got)
		}
		if len(packOAck(got.accepted)) > maxRequest {
			t.Errorf("%q: the answer does not fit into what a client must read", b)
		}
		name, err := clean(r.name)
		if err == nil && (name == ".." || len(name) > 2 && name[:3] == "../" || len(name) > 0 && name[0] == '/') {
			t.Errorf("%q leads to %q", r.name, name)
		}
	})
}
