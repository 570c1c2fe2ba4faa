package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A local cluster lives for minutes to days; its keys are never written outside its own folder.
const validity = 365 * 24 * time.Hour

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// writePKI writes into the folder arguments[0]: ca.crt and ca.key; apiserver.crt and .key for loopback addresses and
// the first service address arguments[1]; etcd.crt and .key for both sides of etcd; a client certificate for each of
// admin, kwok (both in group system:masters), kube-controller-manager and kube-scheduler, so that the audit log tells
// them apart; sa.key and sa.pub that sign service account tokens.
func writePKI(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: pki FOLDER SERVICE_ADDRESS")
	}
	folder, service := arguments[0], net.ParseIP(arguments[1])
	if service == nil {
		return errors.New("the service address is no IP address: " + arguments[1])
	}
	ca, err := newAuthority(folder)
	if err != nil {
		return err
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	certificates := map[string]*x509.Certificate{
		"apiserver": {
			Subject:     pkix.Name{CommonName: "kube-apiserver"},
			DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			IPAddresses: append([]net.IP{service}, loopback...),
		},
		"etcd":  {Subject: pkix.Name{CommonName: "etcd"}, DNSNames: []string{"localhost"}, IPAddresses: loopback},
		"admin": {Subject: pkix.Name{CommonName: "local-admin", Organization: []string{"system:masters"}}},
		"kwok":  {Subject: pkix.Name{CommonName: "kwok", Organization: []string{"system:masters"}}},
		// The API server's own bootstrap roles are bound to these two names.
		"kube-controller-manager": {Subject: pkix.Name{CommonName: "system:kube-controller-manager"}},
		"kube-scheduler":          {Subject: pkix.Name{CommonName: "system:kube-scheduler"}},
	}
	for name, template := range certificates {
		if err := ca.issue(folder, name, template); err != nil {
			return err
		}
	}
	return writeTokenKeys(folder)
}

func newAuthority(folder string) (*authority, error) {
	key, err := newKey(filepath.Join(folder, "ca.key"))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "servingplan-local-cluster"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	ca := &authority{certificate: template, key: key}
	der, err := ca.sign(template, key.Public())
	if err != nil {
		return nil, err
	}
	if ca.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return ca, writePEM(filepath.Join(folder, "ca.crt"), "CERTIFICATE", der)
}

func (ca *authority) issue(folder, name string, template *x509.Certificate) error {
	key, err := newKey(filepath.Join(folder, name+".key"))
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := ca.sign(template, key.Public())
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(folder, name+".crt"), "CERTIFICATE", der)
}

func (ca *authority) sign(template *x509.Certificate, public crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// An hour back, for a clock that is set while the cluster runs.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, template, ca.certificate, public, ca.key)
}

func writeTokenKeys(folder string) error {
	key, err := newKey(filepath.Join(folder, "sa.key"))
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(folder, "sa.pub"), "PUBLIC KEY", public)
}

func newKey(path string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
