//! One form for a PCI address.

/// The address as the system writes it, `0000:65:00.0`, from any usual form: with a domain of eight
/// digits (the driver's), of four, or none, in capitals or not, with or without the function.
/// `None` for what is no PCI address.
pub fn normal_pci(address: &str) -> Option<String> {
    let mut parts = address.trim().rsplit(':');
    let (device, function) =
        parts.next().map(|last| last.split_once('.').unwrap_or((last, "0")))?;
    let bus = parts.next()?;
    let domain = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    let domain = hexadecimal(domain, 0xffff_ffff)?;
    let bus = hexadecimal(bus, 0xff)?;
    let device = hexadecimal(device, 0x1f)?;
    let function = hexadecimal(function, 7)?;
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}

fn hexadecimal(digits: &str, most: u32) -> Option<u32> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|value| is_plain && *value <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_one_address_are_one() {
        for form in
            ["00000000:65:00.0", "0000:65:00.0", "65:00.0", "65:00", " 0000:65:00.0 ", "0:65:0.0"]
        {
            assert_eq!(normal_pci(form).as_deref(), Some("0000:65:00.0"), "{form}");
        }
        assert_eq!(normal_pci("00010000:AF:00.0").as_deref(), Some("10000:af:00.0"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for form in
            ["", "0", "65", "cuda:0x", "GPU-65:00", "1:2:3:4.5", "65:00.9", "165:00.0", "65:+1"]
        {
            assert_eq!(normal_pci(form), None, "{form}");
        }
    }
}
