//! Protocols that change to TLS on a connection in plaintext.

units::named! {
    /// A protocol with an upgrade to TLS.
    pub enum Protocol: "protocol with STARTTLS" {
        /// Mail transfer and submission (RFC 3207).
        Smtp = "smtp",
        /// Mail access (RFC 9051 §6.2.1).
        Imap = "imap",
        /// Mail access (RFC 2595 §4).
        Pop3 = "pop3",
        /// File transfer, `AUTH TLS` (RFC 4217 §4).
        Ftp = "ftp",
        /// Directories (RFC 4511 §4.14).
        Ldap = "ldap",
        /// Messaging, from a client to a server (RFC 6120 §5).
        Xmpp = "xmpp" | "xmpp-client",
        /// Messaging, from a server to a server (RFC 6120 §5).
        XmppServer = "xmpp-server",
        /// PostgreSQL's SSLRequest.
        Postgres = "postgres" | "postgresql",
        /// CLIENT_SSL of MySQL and MariaDB.
        Mysql = "mysql" | "mariadb",
        /// ManageSieve (RFC 5804 §2.2).
        Sieve = "sieve" | "managesieve",
        /// News (RFC 4642).
        Nntp = "nntp",
    }
}

impl Protocol {
    /// The port that servers listen on by default (IANA's registry of ports).
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Protocol::Smtp => 25,
            Protocol::Imap => 143,
            Protocol::Pop3 => 110,
            Protocol::Ftp => 21,
            Protocol::Ldap => 389,
            Protocol::Xmpp => 5222,
            Protocol::XmppServer => 5269,
            Protocol::Postgres => 5432,
            Protocol::Mysql => 3306,
            Protocol::Sieve => 4190,
            Protocol::Nntp => 119,
        }
    }

    /// The name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Protocol::Smtp => "SMTP",
            Protocol::Imap => "IMAP",
            Protocol::Pop3 => "POP3",
            Protocol::Ftp => "FTP",
            Protocol::Ldap => "LDAP",
            Protocol::Xmpp | Protocol::XmppServer => "XMPP",
            Protocol::Postgres => "PostgreSQL",
            Protocol::Mysql => "MySQL",
            Protocol::Sieve => "ManageSieve",
            Protocol::Nntp => "NNTP",
        }
    }
}
