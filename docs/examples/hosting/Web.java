// Web.java: serves the files of the working directory over HTTP, on the listening socket that is its standard input (java@.app).
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Web {
    public static void main(String[] arguments) throws IOException {
        if (!(System.inheritedChannel() instanceof ServerSocketChannel listener)) {
            System.err.println("Web: standard input is no listening socket");
            System.exit(1);
            return;
        }
        ExecutorService threads = Executors.newFixedThreadPool(8);
        while (true) {
            SocketChannel client = listener.accept();
            threads.execute(() -> answer(client));
        }
    }

    private static void answer(SocketChannel client) {
        try (client) {
            BufferedReader reader = new BufferedReader(Channels.newReader(client, StandardCharsets.ISO_8859_1));
            String request = reader.readLine();
            for (String line = request; line != null && !line.isEmpty();) line = reader.readLine();
            String[] words = request == null ? new String[0] : request.split(" ");
            Path root = Path.of("").toAbsolutePath();
            Path file = words.length > 1 ? root.resolve("." + words[1]).normalize() : root;
            boolean isFound = file.startsWith(root) && Files.isRegularFile(file);
            byte[] body = isFound ? Files.readAllBytes(file) : "Not found\n".getBytes(StandardCharsets.US_ASCII);
            String head = "HTTP/1.1 " + (isFound ? "200 OK" : "404 Not Found") + "\r\nContent-Length: " + body.length
                + "\r\nConnection: close\r\n\r\n";
            var output = Channels.newOutputStream(client);
            output.write(head.getBytes(StandardCharsets.US_ASCII));
            output.write(body);
        } catch (IOException | RuntimeException error) {
            System.err.println("Web: " + error);
        }
    }
}
