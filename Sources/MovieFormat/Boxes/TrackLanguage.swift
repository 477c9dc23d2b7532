// SPDX-License-Identifier: Apache-2.0

/// Converts language codes to those of container formats.
package enum TrackLanguage {
  /// The language code that a container stores for an ISO 639-2 code.
  ///
  /// Nil if the container has none.
  ///
  /// MP4 accepts any three-letter code. QuickTime has a fixed table. Some languages in this table
  /// have two codes in ISO 639-2, of which libavformat knows only one.
  package static func stored(_ code: String, in container: String) -> String? {
    guard container == "mov" else { return code }
    let name = other[code] ?? code
    return quickTime.contains(name) ? name : nil
  }

  private static let other = [
    "bod": "tib", "cym": "wel", "cze": "ces", "deu": "ger", "ell": "gre", "eus": "baq",
    "fao": "fo ", "fas": "per", "fre": "fra", "gle": "iri", "hrv": "hr ", "hye": "arm",
    "isl": "ice", "kat": "geo", "mkd": "mac", "msa": "may", "mya": "bur", "nld": "dut",
    "pan": "pa ", "rum": "ron", "slo": "slk", "sqi": "alb", "srp": "sr ", "swe": "sve",
    "zho": "chi",
  ]

  /// The codes in libavformat's table `mov_mdhd_language_map`.
  private static let quickTime: Set<String> = [
    "eng", "fra", "ger", "ita", "dut", "sve", "spa", "dan", "por", "nor", "heb", "jpn", "ara",
    "fin", "gre", "ice", "mlt", "tur", "hr ", "chi", "urd", "hin", "tha", "kor", "lit", "pol",
    "hun", "est", "lav", "smi", "fo ", "per", "rus", "iri", "alb", "ron", "ces", "slk", "slv",
    "yid", "sr ", "mac", "bul", "ukr", "bel", "uzb", "kaz", "aze", "arm", "geo", "mol", "kir",
    "tgk", "tuk", "mon", "pus", "kur", "kas", "snd", "tib", "nep", "san", "mar", "ben", "asm",
    "guj", "pa ", "ori", "mal", "kan", "tam", "tel", "sin", "bur", "khm", "lao", "vie", "ind",
    "tgl", "may", "amh", "tir", "orm", "som", "swa", "kin", "run", "nya", "mlg", "epo", "wel",
    "baq", "cat", "lat", "que", "grn", "aym", "tat", "uig", "dzo", "jav", "und",
  ]
}
